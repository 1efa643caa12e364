"""Faults in a real vLLM with the guard in it: whatever goes wrong, the text stays and the server lives.

    BREAKEVEN_VLLM_PYTHON=V/bin/python pytest -m vllm -s tests/e2e/test_guard_faults_vllm.py

prints a table of what the server did. One server has nearly all faults in turn (faulty_guard.py plants them);
the text to hold against is its own while its kill file keeps the guard off. An exception in the policy is in
test_guard_vllm.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Any

import pytest

from breakeven.cost.calibration import Calibration, save_calibration
from breakeven.cost.curve import CurvePoint
from breakeven.guard._kernels import LONGEST_RUN
from breakeven.guard.config import CONFIG
from breakeven.guard.survival import Survival
from breakeven.guard.vllm_rows import MOST_PARKED
from breakeven.trace.meta import ServerInfo
from tests.e2e.command import soon
from tests.e2e.guarded_vllm import (
    GUARD,
    ROOM,
    Prompt,
    Served,
    mixed_prompts,
    serving,
    skip_without_guard,
)
from tests.e2e.tiny_qwen import BYTE_0, PRINTABLE, write_tiny_qwen

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

PLANTED = Path(__file__).with_name("faulty_guard.py")
FAULTY = {**GUARD, "model": f"{PLANTED.stem}.Faulty"}
SEQUENCES = 8
FLAGS = (
    "--max-num-seqs", str(SEQUENCES), "--max-num-batched-tokens", "128",
    "--enable-chunked-prefill", "--enable-prefix-caching", "--num-gpu-blocks-override", "96",
)  # fmt: skip
"""Blocks of 128 tokens, so few that all are in use soon: memory that grows is none of theirs."""
DRAFTED, ACCEPTED = "breakeven_guard_drafted_tokens_total", "breakeven_guard_accepted_tokens_total"
SCORED, ON = "breakeven_guard_shadow_scored_tokens_total", "breakeven_guard_on"
VERIFIED = "vllm:spec_decode_num_draft_tokens_total"
"""Near the end of max_model_len vLLM verifies drafts of its own, all zeros, and counts them here."""
MIB = 2**20
Ids = tuple[int, ...]


@dataclass(frozen=True)
class Faults:
    """A server, and the folder that its faults are planted in."""

    served: Served
    folder: Path

    @property
    def state(self) -> Path:
        return self.folder.with_name("state.json")

    @property
    def log(self) -> str:
        return self.served.log.read_text(errors="replace")

    @contextmanager
    def planted(self, fault: str, content: str = "") -> Iterator[None]:
        file = self.folder / fault
        partial = file.with_name("partial")
        partial.write_text(content)
        partial.replace(file)
        try:
            yield
        finally:
            file.unlink()

    def post(self, prompt: Sequence[int], **more: Any) -> dict[str, Any]:
        with self.open(prompt, **more) as response:
            answer: dict[str, Any] = json.loads(response.read())
        return answer

    def open(self, prompt: Sequence[int], **more: Any) -> Any:
        body = {"model": "tiny", "prompt": list(prompt), "ignore_eos": True, "return_token_ids": True, **more}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        headers = {"Content-Type": "application/json"}
        url = f"{self.served.url}/v1/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310
        return opener.open(request, timeout=300)

    def sizes(self) -> dict[str, float]:
        """What the guard holds, at a step of a request of its own."""
        told = self.folder / "sizes.json"
        told.unlink(missing_ok=True)
        (self.folder / "sizes").touch()
        self.served.reply(Prompt((BYTE_0 + 1, BYTE_0 + 2), 2))
        sizes: dict[str, float] = json.loads(told.read_text())
        return sizes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    skip_without_guard(PYTHON)
    return write_tiny_qwen(tmp_path_factory.mktemp("tiny") / "model")


@contextmanager
def faulty(model: Path, folder: Path, log: str, **config: Any) -> Iterator[Faults]:
    given = {"state_file": str(folder / "state.json"), "kill_file": str(folder / "kill"), **config}
    planted, modules = folder / "faults", folder / "modules"
    for one in (planted, modules):
        one.mkdir(exist_ok=True)
    shutil.copy(PLANTED, modules)
    with serving(
        PYTHON, model, FAULTY, folder / log, config=given, more=FLAGS, folders=(modules,),
        variables={"FAULTS": str(planted)},
    ) as served:  # fmt: skip
        yield Faults(served, planted)


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with faulty(model, tmp_path_factory.mktemp("faulty"), "vllm.log") as one:
        print("\n| fault | what the server did |\n|---|---|")
        yield one


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    """Short ones, some of all the model's length, and some of one text."""
    random = Random(5)
    short = mixed_prompts(8, 200)
    long = [
        Prompt(tuple(BYTE_0 + random.choice(PRINTABLE) for _ in range(200)) * 4, 224 if i else 100)
        for i in range(2)
    ]
    return [*short, *long, *[short[0]] * 4]


@pytest.fixture(scope="module")
def texts(server: Faults, prompts: list[Prompt]) -> list[Ids]:
    """What the server says without a draft."""
    kill = server.folder.with_name("kill")
    kill.touch()
    server.served.reply(prompts[0])
    assert soon(lambda: bool(server.served.reply(prompts[0])) and server.served.guard()[ON] == 0)
    try:
        return server.served.replies(prompts, 1)
    finally:
        kill.unlink()


@dataclass(frozen=True)
class Held:
    """Texts that have to stay, whatever is planted."""

    server: Faults
    prompts: list[Prompt]
    texts: list[Ids]

    def stays(self, concurrency: int = 4) -> dict[str, float]:
        """Ask for all of them; returns by how much the guard's counters grew meanwhile."""
        before = self.server.served.guard()
        assert self.server.served.replies(self.prompts, concurrency) == self.texts
        after = self.server.served.guard()
        assert after[ON] == 1 and "breakeven guard failed" not in self.server.log
        return {name: value - before.get(name, 0.0) for name, value in after.items()}


@pytest.fixture(scope="module")
def held(server: Faults, prompts: list[Prompt], texts: list[Ids]) -> Held:
    one = Held(server, prompts, texts)
    assert soon(lambda: bool(server.served.reply(prompts[0])) and server.served.guard()[ON] == 1)
    one.stays(1)
    return one


def tell(fault: str, did: str) -> None:
    print(f"| {fault} | {did} |")


def steps_of(grown: dict[str, float], kind: str) -> float:
    return grown[f'breakeven_guard_steps_total{{kind="{kind}"}}']


@pytest.mark.parametrize("concurrency", (1, SEQUENCES))
def test_long_prompts_in_chunks_and_one_prompt_at_once(held: Held, concurrency: int) -> None:
    """Steps have 128 tokens at most, four requests are the same, and two reach max_model_len."""
    grown = held.stays(concurrency)
    assert grown[DRAFTED] > 0
    if concurrency > 1:
        assert steps_of(grown, "prefill") > 0
    tell(
        f"prompts of 800 tokens in chunks of 128, one prompt 5 times, two replies to the end of "
        f"max_model_len, {concurrency} at a time",
        f"text as without drafts; {grown[DRAFTED]:.0f} tokens drafted, {grown[ACCEPTED]:.0f} accepted",
    )


@pytest.mark.parametrize("offset", (-3600.0, 7200.0))
def test_a_clock_that_jumps(held: Held, offset: float) -> None:
    with ThreadPoolExecutor(1) as pool:
        going = [pool.submit(held.stays) for _ in range(3)]
        time.sleep(0.5)
        with held.server.planted("clock", str(offset)):
            time.sleep(0.5)
        drafted = sum(one.result()[DRAFTED] for one in going)
    after = held.stays()
    assert after[DRAFTED] > 0
    tell(
        f"the clock {'leaps' if offset > 0 else 'goes back'} by {abs(offset):.0f} s, and returns",
        f"text as without drafts; {drafted:.0f} tokens drafted meanwhile, {after[DRAFTED]:.0f} after",
    )


@pytest.mark.parametrize("fault", ("slow drafts", "slow steps"))
def test_steps_that_get_slow(held: Held, fault: str) -> None:
    with held.server.planted(fault):
        slow = held.stays()
    fast = held.stays()
    named = "drafts cost 5 times as much" if fault == "slow drafts" else "steps take 3 times as long"
    tell(
        f"{named}, for a while",
        f"text as without drafts; {slow[DRAFTED]:.0f} tokens drafted meanwhile, {fast[DRAFTED]:.0f} after",
    )


def test_a_scrape_that_fails(held: Held) -> None:
    with held.server.planted("scrape"):
        assert held.server.served.replies(held.prompts, 4) == held.texts
        with pytest.raises(urllib.error.HTTPError) as refused:
            held.server.served.guard()
    held.server.served.reply(held.prompts[0])
    held.stays()
    tell(
        "an exception while metrics are read",
        f"text as without drafts; the page answers {refused.value.code}",
    )


@pytest.mark.parametrize("path", ("/proc/guard.json", "/dev/full"))
def test_a_state_file_that_cannot_be_written(held: Held, path: str) -> None:
    with held.server.planted("state", path):
        held.stays()
        assert soon(lambda: bool(held.server.served.reply(held.prompts[0])) and path in held.server.log)
        held.stays()
    (said,) = [line for line in held.server.log.splitlines() if f"{path} cannot be written" in line]
    tell(f"state_file {path}", f"text as without drafts; logged once: {said.partition('guard: ')[2]}")


def test_a_kill_file_that_cannot_be_looked_at(held: Held) -> None:
    with held.server.planted("unseen"):
        grown = held.stays()
    tell("an exception when the kill file is looked at", f"it stays on; {grown[DRAFTED]:.0f} tokens drafted")


def test_a_reply_that_loops_does_not_teach(held: Held) -> None:
    before, scored = held.server.sizes()["taught"], held.server.served.guard()[SCORED]
    prompt, tokens = held.prompts[1].ids, 800
    held.server.post(prompt, max_tokens=tokens, temperature=0, allowed_token_ids=[BYTE_0 + 97])
    looped = held.server.served.guard()[SCORED] - scored
    taught = held.server.sizes()["taught"] - before
    assert looped > tokens / 2 and taught <= 2 * LONGEST_RUN
    tell(
        f"a reply of {tokens} times one token",
        f"{looped:.0f} candidate tokens scored, the shared counts learned of {taught:.0f}",
    )


def test_requests_that_are_aborted(held: Held) -> None:
    def abort(prompt: Prompt) -> None:
        with held.server.open(prompt.ids, max_tokens=200, temperature=0, stream=True) as response:
            for _ in range(6):
                response.readline()

    with ThreadPoolExecutor(SEQUENCES) as pool:
        going = pool.submit(held.stays, 3)
        list(pool.map(abort, held.prompts[:8] * 5))
        going.result()
    assert soon(lambda: held.server.served.vllm("vllm:num_requests_running") == 0)
    held.stays()
    sizes = held.server.sizes()
    assert sizes["requests"] == 1
    tell("40 replies whose client goes away", "the others' text as without drafts, during and after it")


def test_sampled_requests(held: Held) -> None:
    """vLLM 0.32 on a CPU ends on a seed whose prompt takes two steps, whatever drafts: it goes alone."""
    before = held.server.served.guard()
    sampled = {"max_tokens": 150, "temperature": 1.0}
    with ThreadPoolExecutor(4) as pool:
        going = [pool.submit(held.server.post, one.ids, n=4, **sampled) for one in held.prompts[:4]]
        answers = [one.result() for one in going]
    seeded = held.server.post(held.prompts[1].ids, seed=7, **sampled)
    lengths = {len(choice["token_ids"]) for answer in answers for choice in answer["choices"]}
    assert lengths == {150} and all(len(answer["choices"]) == 4 for answer in answers)
    assert len(seeded["choices"][0]["token_ids"]) == 150
    grown = held.server.served.guard()[DRAFTED] - before[DRAFTED]
    held.stays()
    tell(
        "4 requests with n = 4 and temperature 1, and one with a seed",
        f"17 replies of 150 tokens; {grown:.0f} tokens drafted",
    )


def test_a_grammar_that_cuts_drafts(held: Held) -> None:
    """vLLM drops of a draft what the grammar does not allow: the guard is not told."""
    before, drafted = held.server.served.guard(), held.server.served.vllm(VERIFIED)
    prompt = [BYTE_0 + byte for byte in b"abcabd" * 20]
    answer = held.server.post(
        prompt, max_tokens=121, temperature=0, structured_outputs={"regex": "(abc){40}d"}, ignore_eos=False
    )
    assert bytes(one - BYTE_0 for one in answer["choices"][0]["token_ids"][:121]) == b"abc" * 40 + b"d"
    after = held.server.served.guard()
    ours, theirs = after[DRAFTED] - before[DRAFTED], held.server.served.vllm(VERIFIED) - drafted
    assert theirs <= ours
    held.stays()
    tell(
        "a reply by a grammar",
        f"text as the grammar wants; {ours:.0f} tokens drafted, {theirs:.0f} of them verified by vLLM; "
        f"{steps_of(after, 'prefill') - steps_of(before, 'prefill'):.0f} steps not learned",
    )


def test_two_thousand_requests_take_no_memory(held: Held) -> None:
    random = Random(9)

    def short(_: int) -> None:
        ids = [BYTE_0 + random.choice(PRINTABLE) for _ in range(random.randint(8, 40))]
        held.server.served.reply(Prompt((*ids, *ids), random.randint(2, 10)))

    sizes = []
    for requests in (500, 1500):
        with ThreadPoolExecutor(SEQUENCES) as pool:
            list(pool.map(short, range(requests)))
        sizes.append(held.server.sizes())
    first, last = sizes
    assert last["accounts"] <= 2 * (MOST_PARKED + SEQUENCES) and last["parked"] <= MOST_PARKED
    assert last["requests"] == 1 and last["rss"] - first["rss"] < 64 * MIB, (
        "vLLM's own allocators take some 40 MiB meanwhile, with and without a guard"
    )
    held.stays()
    tell(
        "2,000 requests, 8 at a time",
        f"after 500 and 2,000: the engine has {first['rss'] / MIB:.1f} and {last['rss'] / MIB:.1f} MiB, "
        f"{first['parked']:.0f} and {last['parked']:.0f} digests, {first['accounts']:.0f} and "
        f"{last['accounts']:.0f} accounts, {first['step sizes']:.0f} and {last['step sizes']:.0f} step sizes",
    )


def test_killed_while_it_writes_and_begun_with_half_a_file(held: Held, model: Path) -> None:
    """The last of the server; the next one also finds its port taken, and gets an exception in the index."""
    server = held.server
    assert soon(lambda: bool(server.served.reply(held.prompts[0])) and server.state.exists())
    with server.planted("dies"), pytest.raises((OSError, HTTPException)):
        for _ in range(20):
            server.served.reply(held.prompts[0])
    kept = server.state.read_bytes()
    left = [path.name for path in server.state.parent.glob(".state.json*")]
    assert left and Survival.from_json(kept).counts.sum() > 0
    tell(
        "kill -9 between writing the state file and putting it in place",
        "the file before it is there, and whole",
    )
    server.state.write_bytes(kept[: len(kept) // 2])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with faulty(model, server.state.parent, "second.log", metrics_port=port) as second:
            _begun_with_half(second, held, port)


def _begun_with_half(second: Faults, held: Held, port: int) -> None:
    said = {
        "half a state file at the start": "begun anew",
        "metrics_port taken": f"no metrics can be served at 127.0.0.1:{port}",
    }
    assert second.served.replies(held.prompts, 4) == held.texts
    for fault, words in said.items():
        (line,) = [line for line in second.log.splitlines() if words in line]
        tell(fault, f"text as without drafts; logged: {line.partition('guard: ')[2]}")
    assert second.served.vllm(VERIFIED) > 0
    with second.planted("index"):
        assert second.served.replies(held.prompts, 4) == held.texts
    assert second.log.count("breakeven guard failed") == 1
    after = second.served.vllm(VERIFIED)
    short = len(held.prompts) // 2
    assert second.served.replies(held.prompts[:short], 4) == held.texts[:short]
    assert second.served.vllm(VERIFIED) == after
    tell("an exception in the index", "text as without drafts; logged once, and nothing is drafted any more")


def other_calibration(folder: Path) -> Path:
    made = Calibration(
        created="2026-01-01T00:00:00Z",
        breakeven_version="0.1.0",
        url="http://127.0.0.1:8000",
        api="completions",
        model="tiny",
        server=ServerInfo(engine="vllm", flags={"max_model_len": 4 * ROOM}),
        workload="brief",
        max_tokens=64,
        moe=False,
        points=tuple(CurvePoint(n, 0.01, 0.01, 0.01, 9) for n in (1, 2, 4)),
        complete=True,
    )
    file = folder / "calibration.json"
    save_calibration(made, file)
    return file


def test_what_is_refused_at_the_start(model: Path, tmp_path: Path) -> None:
    calibration = json.dumps({"calibration": str(other_calibration(tmp_path))})
    refused = {
        "a calibration of another server": (calibration, f"max_model_len {4 * ROOM} there"),
        "BREAKEVEN_GUARD_CONFIG that is no JSON": ("{", "is no JSON"),
        "BREAKEVEN_GUARD_CONFIG that names a file that is missing": ("/no/guard.json", "cannot be read"),
    }

    def start(fault: str) -> str:
        config, words = refused[fault]
        log = tmp_path / f"{words[:9]}.log"
        with (
            pytest.raises(AssertionError),
            serving(PYTHON, model, GUARD, log, more=FLAGS, variables={CONFIG: config}),
        ):
            pass
        said = re.search(f"RuntimeError: .*GuardedNgram': (.*{words}.*)", log.read_text(errors="replace"))
        assert said, log.read_text(errors="replace")[-4000:]
        return said[1]

    with ThreadPoolExecutor(len(refused)) as pool:
        said = dict(zip(refused, pool.map(start, refused), strict=True))
    for fault, line in said.items():
        tell(fault, f"does not start: {line}")
