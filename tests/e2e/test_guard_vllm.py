"""The guard in a real vLLM on this machine's CPU.

    BREAKEVEN_VLLM_PYTHON=V/bin/python pytest -m vllm tests/e2e/test_guard_vllm.py
    BREAKEVEN_VLLM_PYTHON=V/bin/python pytest -m "vllm and quiet" -s tests/e2e/test_guard_vllm.py

Its Python needs breakeven's own dependencies (docs/guard-vllm.md). The second line measures time, and prints
a table.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import exp, log
from pathlib import Path

import pytest

from breakeven.guard.config import MODE
from breakeven.guard.settings import GuardSettings
from tests.e2e.guarded_vllm import (
    FREE,
    GUARD,
    STOCK,
    Prompt,
    Served,
    lacks,
    mixed_prompts,
    serving,
    skip_without_guard,
)
from tests.e2e.small_qwen import write_small_qwen

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

EXPERT_FF = 64
ROWS = ("--max-num-seqs", "4")
DRAFTED, ON = "breakeven_guard_drafted_tokens_total", "breakeven_guard_on"
PLANTED = '''
"""Drafters with a fault in them."""

from breakeven.guard.vllm import GuardedNgram


class Failing(GuardedNgram):
    """Its policy fails at its fortieth decision."""

    def __init__(self, vllm_config):
        super().__init__(vllm_config)
        self.decisions, self.decide = 0, self._steps.policy.decide
        self._steps.policy.decide = self.fail

    def fail(self, *given):
        self.decisions += 1
        if self.decisions >= 40:
            raise RuntimeError("planted")
        return self.decide(*given)
'''
TIMED = '''
"""When each step ended, and what it gave and drafted, to STEPS: of one request at a time."""

import os
import time
from pathlib import Path

from breakeven.guard.vllm import GuardedNgram


class Timed(GuardedNgram):
    def propose(self, sampled, *given, **named):
        drafts = super().propose(sampled, *given, **named)
        with Path(os.environ["STEPS"]).open("a") as file:
            file.write(f"{time.monotonic()} {len(sampled[0])} {len(drafts[0])}\\n")
        return drafts
'''
SLOW = '''
"""A server whose steps with drafts can be made slower from outside."""

import os
import time
from pathlib import Path

from breakeven.guard.vllm import GuardedNgram


class Slow(GuardedNgram):
    """While SLOW exists each drafted token takes 20 ms more; what each step drafted goes to STEPS."""

    drafted = 0

    def propose(self, *given, **named):
        slow = Path(os.environ["SLOW"]).exists()
        if slow:
            time.sleep(0.02 * self.drafted)
        drafts = super().propose(*given, **named)
        self.drafted = sum(map(len, drafts))
        with Path(os.environ["STEPS"]).open("a") as file:
            file.write(f"{int(slow)} {self.drafted}\\n")
        return drafts
'''


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    skip_without_guard(PYTHON)
    return write_small_qwen(tmp_path_factory.mktemp("moe") / "model", moe=True, ff=EXPERT_FF, free=FREE)


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    return mixed_prompts(16, 240)


@pytest.fixture(scope="module")
def plain(model: Path, prompts: list[Prompt]) -> list[tuple[int, ...]]:
    """What the model says without a drafter."""
    with serving(PYTHON, model, None, model.parent / "plain.log", more=ROWS) as one:
        return one.replies(prompts, 1)


@pytest.fixture(scope="module")
def guarded(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded")
    config = {"kill_file": str(folder / "kill"), "state_file": str(folder / "state.json")}
    with serving(PYTHON, model, GUARD, folder / "vllm.log", config=config, more=ROWS) as one:
        yield one


@pytest.mark.parametrize("concurrency", (1, 4))
def test_the_text_is_plain_decodings(
    guarded: Served, prompts: list[Prompt], plain: list[tuple[int, ...]], concurrency: int
) -> None:
    before = guarded.guard()
    assert guarded.replies(prompts, concurrency) == plain
    after = guarded.guard()
    assert after[ON] == 1 and after[DRAFTED] > before[DRAFTED]
    assert (
        after['breakeven_guard_steps_total{kind="plain"}']
        > before['breakeven_guard_steps_total{kind="plain"}']
    )
    assert "breakeven guard failed" not in guarded.log.read_text()


def test_a_kill_file_stops_it(guarded: Served, prompts: list[Prompt], plain: list[tuple[int, ...]]) -> None:
    kill = guarded.log.with_name("kill")
    guarded.reply(prompts[0])
    kill.touch()
    time.sleep(1.1)
    guarded.reply(prompts[1])
    before = guarded.guard()
    assert before[ON] == 0
    assert guarded.replies(prompts[:4], 4) == plain[:4]
    assert guarded.guard()[DRAFTED] == before[DRAFTED]
    kill.unlink()
    time.sleep(1.1)
    assert guarded.replies(prompts[:4], 1) == plain[:4]
    after = guarded.guard()
    assert after[ON] == 1 and after[DRAFTED] > before[DRAFTED]


def test_what_it_counts_is_what_vllm_counts(guarded: Served) -> None:
    """But for the tokens that a request's last step was given: the request is over when they come."""
    drafted = guarded.vllm("vllm:spec_decode_num_draft_tokens_total")
    accepted = guarded.vllm("vllm:spec_decode_num_accepted_tokens_total")
    counted = guarded.guard()
    print(f"\nvLLM: {drafted:g} drafted, {accepted:g} accepted; the guard: {counted}")
    assert 0 < accepted <= drafted
    assert counted["breakeven_guard_accepted_tokens_total"] <= accepted
    assert counted[DRAFTED] <= drafted


def test_preempted_requests_come_back(
    model: Path, prompts: list[Prompt], plain: list[tuple[int, ...]]
) -> None:
    tight = ("--num-gpu-blocks-override", "10", "--no-enable-prefix-caching", *ROWS)
    with serving(PYTHON, model, GUARD, model.parent / "tight.log", more=tight) as one:
        assert one.replies(prompts, 4) == plain
        assert one.vllm("vllm:num_preemptions_total") > 0
        assert one.guard()[ON] == 1 and one.guard()[DRAFTED] > 0


def test_after_a_failure_the_server_goes_on(
    model: Path, prompts: list[Prompt], plain: list[tuple[int, ...]], tmp_path: Path
) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    failing = {**GUARD, "model": "planted.Failing"}
    written = tmp_path / "vllm.log"
    with serving(PYTHON, model, failing, written, more=ROWS, folders=(tmp_path,)) as one:
        assert one.replies(prompts, 4) == plain
        before = one.guard()
        assert one.replies(prompts, 1) == plain
        after = one.guard()
    assert after[ON] == 0 and after[DRAFTED] == before[DRAFTED]
    assert written.read_text().count("breakeven guard failed") == 1


def test_a_wrong_configuration_is_told_at_the_start(model: Path) -> None:
    written = model.parent / "wrong.log"
    with (
        pytest.raises(AssertionError),
        serving(PYTHON, model, GUARD, written, config={"epsilom": 0.01}, more=ROWS),
    ):
        pass
    assert "epsilom" in written.read_text()


@pytest.mark.quiet
def test_drafts_that_get_slow_are_left_and_taken_up_again(model: Path, tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(SLOW)
    slow, steps = tmp_path / "slow", tmp_path / "steps"
    env = {"SLOW": str(slow), "STEPS": str(steps)}
    prompt = mixed_prompts(1, 800)[0]
    drafter = {**GUARD, "model": "planted.Slow"}
    with serving(
        PYTHON, model, drafter, tmp_path / "vllm.log", folders=(tmp_path,), variables=env, more=ROWS
    ) as one:
        for phase in range(3):
            slow.touch() if phase == 1 else slow.unlink(missing_ok=True)
            for _ in range(6):
                one.reply(Prompt(prompt.ids, 800))
    told = [tuple(map(int, line.split())) for line in steps.read_text().splitlines()]
    begin = next(i for i, (is_slow, _) in enumerate(told) if is_slow)
    end = next(i for i, (is_slow, _) in enumerate(told) if i > begin and not is_slow)
    shares = [
        drafted_share(told[a:b])
        for a, b in ((begin - 200, begin), (begin + 50, end), (len(told) - 200, len(told)))
    ]
    print(f"\nsteps with drafts: {shares[0]:.0%} before, {shares[1]:.0%} while slow, {shares[2]:.0%} after")
    assert shares[0] > 0.5 and shares[1] < 0.1 and shares[2] > 0.5


def drafted_share(steps: Sequence[tuple[int, ...]]) -> float:
    return sum(drafted > 0 for _, drafted in steps) / len(steps)


SIDES = {"plain": None, "stock": STOCK, "guard": GUARD, "off": GUARD}
"""`off` is the guard that never drafts: what it costs vLLM to have a drafter at all."""
REPEATS = {1: 12, 4: 4, 8: 4}
"""By concurrency: of single prompts the least of four times was up to 18 % above the least of twelve."""
KEPT = 0.93
"""The guard's least speedup over plain and `off` on a prompt: replies of one server differ by 5 % on such a
machine. What a reply can lose is measured by its steps."""
IN_PROCESS = ("--distributed-executor-backend", "vllm.v1.executor.uniproc_executor.UniProcExecutor")
"""The worker within the engine, as vLLM has it on one GPU. On a CPU it is a process of its own unless asked
for by name: a drafter then takes one more call between the two in each step, and an idle worker waits busily
for a second on the cores of the server whose turn it is."""
ONE_CORE = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
"""For the worker; the server's other process has the rest. vLLM's own n-gram drafter is parallel numba, which
shares its threads with torch: with numba's default its server decodes on two cores, and the others on one."""
FEED_FORWARD = {"dense": 4096, "moe": 1024}


@pytest.mark.quiet
@pytest.mark.parametrize("kind", ("dense", "moe"))
def test_beside_plain_and_stock(kind: str, tmp_path: Path) -> None:
    """Servers of which one works at a time: each prompt goes to all, in an order that turns."""
    assert not lacks(PYTHON)
    model = write_small_qwen(tmp_path / "model", moe=kind == "moe", ff=FEED_FORWARD[kind], free=FREE)
    prompts = mixed_prompts(8, 240)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                serving(
                    PYTHON,
                    model,
                    speculative,
                    tmp_path / f"{name}.log",
                    more=("--max-num-seqs", "8", *IN_PROCESS),
                    variables=ONE_CORE | ({MODE: "off"} if name == "off" else {}),
                )
            )
            for name, speculative in SIDES.items()
        }
        for one in servers.values():
            one.replies(prompts[:2], 1)
        tables = {concurrency: timed(servers, prompts, concurrency) for concurrency in REPEATS}
        print(servers["guard"].guard())
    for concurrency, table in tables.items():
        print(f"\n{kind}, concurrency {concurrency}: speedups over plain, by prompt, and their mean")
        for name, speedups in table.items():
            cells = " ".join(f"{one:6.3f}" for one in speedups)
            print(f"{name:6} {cells} | {mean(speedups):6.3f}")
    guard, stock, off = (tables[1][name] for name in ("guard", "stock", "off"))
    for one in (tables[1]["plain"], off):
        assert min(ours / idle for ours, idle in zip(guard, one, strict=True)) >= KEPT
    if kind == "moe":
        assert mean(guard) >= mean(stock)


def timed(servers: dict[str, Served], prompts: list[Prompt], concurrency: int) -> dict[str, list[float]]:
    """Plain's time / each side's, the least of the repeats, as whatever else the machine does adds to it.

    At a concurrency above 1 the time is that of all prompts together.
    """
    groups = [[one] for one in prompts] if concurrency == 1 else [prompts]
    times: dict[str, list[list[float]]] = {name: [[] for _ in groups] for name in servers}
    names = list(servers)
    for repeat in range(REPEATS[concurrency]):
        for i, group in enumerate(groups):
            turn, said = (repeat + i) % len(names), set()
            for name in names[turn:] + names[:turn]:
                begin = time.perf_counter()
                said.add(tuple(servers[name].replies(group, concurrency)))
                times[name][i].append(time.perf_counter() - begin)
            assert len(said) == 1 or concurrency > 1, "other text than plain decoding's"
    least = {name: list(map(min, of)) for name, of in times.items()}
    return {
        name: [plain / ours for plain, ours in zip(least["plain"], of, strict=True)]
        for name, of in least.items()
    }


def mean(speedups: Sequence[float]) -> float:
    """Geometric."""
    return exp(statistics.fmean(map(log, speedups)))


@pytest.mark.quiet
def test_no_reply_loses_more_than_epsilon(tmp_path: Path) -> None:
    """Step by step: each reply's time against as many of its own plain steps, so that a machine that is now
    faster, now slower, does not count."""
    (tmp_path / "planted.py").write_text(TIMED)
    model = write_small_qwen(tmp_path / "model", moe=True, ff=FEED_FORWARD["moe"], free=FREE)
    prompts = mixed_prompts(8, 240)
    steps = tmp_path / "steps"
    with serving(
        PYTHON,
        model,
        {**GUARD, "model": "planted.Timed"},
        tmp_path / "vllm.log",
        folders=(tmp_path,),
        variables=ONE_CORE | {"STEPS": str(steps)},
        more=IN_PROCESS,
    ) as one:
        for _ in range(3):
            one.replies(prompts, 1)
    told = (line.split() for line in steps.read_text().splitlines())
    lines = iter([(float(end), int(given), int(drafted)) for end, given, drafted in told])
    lost = [[lost_share(lines, prompt.tokens) for prompt in prompts] for _ in range(3)]
    print("\nlost of plain decoding's time, by prompt; below 0: gained")
    for row in lost:
        print(" ".join(f"{share:+7.1%}" for share in row))
    by_prompt = [statistics.fmean(shares) for shares in zip(*lost, strict=True)]
    print(" ".join(f"{share:+7.1%}" for share in by_prompt), "| means")
    assert max(by_prompt) <= GuardSettings().epsilon + 0.005
    assert max(map(max, lost)) <= GuardSettings().epsilon + 0.02
    assert min(by_prompt) < -0.1


def lost_share(lines: Iterator[tuple[float, int, int]], tokens: int) -> float:
    """Of one reply, taken off `lines`. Its first token is the prefill's."""
    begin, emitted, drafted = next(lines)
    last, plain = begin, []
    while emitted < tokens:
        end, given, drafts = next(lines)
        if not drafted:
            plain.append(end - last)
        last, emitted, drafted = end, emitted + given, drafts
    return (last - begin) / ((tokens - 1) * statistics.fmean(plain)) - 1
