"""How fast replay is on one core, beside the engines' own drafters in the same run.

    python benchmarks/replay.py [--quick]
    BREAKEVEN_PEERS_PYTHON=/path/to/python python benchmarks/replay.py

The second has the peers: a Python with vllm, transformers and arctic-inference; what it lacks is left out.
The corpus (replay_corpus.py) is Python source: 500 requests of 2,048 tokens, half of them output.
Speeds are output tokens per CPU second of one thread, the best of several repeats; compilation is not in
them, but in the two starts. Every row steps through the outputs as a server would, from the first token after
the one that prefill gives. Prints each row when it is there, and writes results/replay.json after each.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from replay_corpus import PROMPT_TOKENS, REQUEST_TOKENS, corpus

from breakeven.drafters.compiler import COMPILED
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import Tokens
from breakeven.drafters.vllm_ngram import VllmNgram, VllmNgramSettings
from breakeven.replay.steps import Steps, step_through, walk_table

RESULTS = Path(__file__).parent / "results" / "replay.json"
PEERS = Path(__file__).parent / "replay_peers.py"
PEERS_PYTHON = os.environ.get("BREAKEVEN_PEERS_PYTHON")
REQUESTS = 500
FIRST = 1
"""Output tokens before the first step."""
N_RANGES = ((1, 3), (2, 3), (2, 4), (3, 5), (3, 7), (5, 5))
K_VALUES = range(1, 17)


@dataclass(frozen=True)
class Row:
    """One figure with what it was measured on."""

    name: str
    output_tokens: int | None
    """Replayed; None where their number says nothing."""
    cpu_s: float
    tokens_per_step: float | None = None
    floor: str | None = None
    """What the figure must reach."""
    note: str = ""

    @property
    def tokens_per_s(self) -> float | None:
        return self.output_tokens / self.cpu_s if self.output_tokens else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the corpus, fewer repeats")
    options = parser.parse_args()
    requests, repeats = (REQUESTS // 10, 5) if options.quick else (REQUESTS, 15)
    tokens = corpus(requests)
    done: list[dict[str, Any]] = []
    for row in rows(tokens, repeats):
        done.append({**asdict(row), "tokens_per_s": row.tokens_per_s})
        print(shown(row), flush=True)
        save(tokens, done)


def rows(tokens: Tokens, repeats: int) -> Iterator[Row]:
    yield from starts()
    if not COMPILED:
        yield from ngram_rows(part(tokens, 5), 1)
        return
    yield from ngram_rows(tokens, repeats)
    yield from other_rows(tokens, repeats)
    yield from suffix_rows(tokens)
    yield without_numba()
    if PEERS_PYTHON:
        yield from peer_rows(tokens)


def ngram_rows(tokens: Tokens, repeats: int) -> Iterator[Row]:
    one = VllmNgramSettings(k=5, min_n=2, max_n=4)
    cold = timed("vllm-ngram, k 5, n 2–4: cold", tokens, repeats, lambda: stepped(tokens, one))
    yield replace(cold, floor="20 M tokens/s")
    many = [VllmNgramSettings(k=k, min_n=2, max_n=4) for k in range(5, 21)]
    cpu_s = min(further_s(tokens, many) for _ in range(repeats))
    yield Row("  each further k", output_tokens(tokens), cpu_s, floor="150 M tokens/s")
    sweep = [VllmNgramSettings(k=k, min_n=low, max_n=high) for (low, high), k in product(N_RANGES, K_VALUES)]
    cpu_s = min(cpu(lambda: last(steps_of(tokens, sweep))) for _ in range(max(2, repeats // 3)))
    yield Row(
        f"  sweep of {len(sweep)} settings",
        output_tokens(tokens) * len(sweep),
        cpu_s,
        floor="1 CPU-second for 1.024 M tokens",
        note=f"{cpu_s:.3f} CPU-seconds for {len(tokens.ids):,} tokens; tokens/s counts each setting",
    )


def other_rows(tokens: Tokens, repeats: int) -> Iterator[Row]:
    deep = VllmNgramSettings(k=5, min_n=2, max_n=24)
    yield timed("vllm-ngram, k 5, n 2–24: cold", tokens, repeats, lambda: stepped(tokens, deep))
    for name in ("hf-prompt-lookup", "llamacpp-ngram-simple"):
        drafter = make_drafter(name, {})
        yield timed(f"{name}: cold", tokens, repeats, lambda d=drafter: step_through(d, tokens, FIRST))


def suffix_rows(tokens: Tokens) -> Iterator[Row]:
    for name, cached, floor in (("own tree", 0, None), ("global tree", 10_000, "1 M tokens/s")):
        settings = {"max_cached_requests": cached}

        def run(settings: dict[str, int] = settings) -> Steps:
            return step_through(make_drafter("vllm-suffix", settings), tokens, FIRST)

        yield replace(timed(f"vllm-suffix, {name}", tokens, 2, run), floor=floor)


def starts() -> Iterator[Row]:
    """The seconds of a fresh process that replays one request, from nothing compiled, and from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first start", "second start"):
            wall_s, cpu_s = child_s({"NUMBA_CACHE_DIR": folder})
            yield Row(name, None, cpu_s, note=f"{wall_s:.2f} s, {cpu_s:.2f} CPU-seconds")


def child_s(environment: dict[str, str]) -> tuple[float, float]:
    before_s, began_s = os.times(), time.perf_counter()
    code = "import replay; replay.step_through(replay.make_drafter('vllm-ngram', {}), replay.corpus(1), 1)"
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=Path(__file__).parent,
        check=True,
    )
    wall_s, after_s = time.perf_counter() - began_s, os.times()
    used_s = after_s.children_user + after_s.children_system
    return wall_s, used_s - before_s.children_user - before_s.children_system


def without_numba() -> Row:
    """The cold row in plain Python, on five requests."""
    code = (
        "import replay; [print(r.cpu_s) for r in replay.ngram_rows(replay.corpus(5), 1) if 'cold' in r.name]"
    )
    answered = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BREAKEVEN_COMPILED": "0"},
        cwd=Path(__file__).parent,
        check=True,
        capture_output=True,
        text=True,
    )
    few = 5 * (REQUEST_TOKENS - PROMPT_TOKENS)
    return Row("vllm-ngram, k 5, n 2–4: cold, without numba", few, float(answered.stdout))


def peer_rows(tokens: Tokens) -> Iterator[Row]:
    """Those that the other Python has; Hugging Face's on a hundredth of the corpus, since it is slow."""
    one = VllmNgramSettings(k=5, min_n=2, max_n=4)
    few = part(tokens, max(2, len(tokens) // 100))
    hf = make_drafter("hf-prompt-lookup", {})
    suffix = [make_drafter("vllm-suffix", {"max_cached_requests": cached}) for cached in (0, 10_000)]
    ours: tuple[tuple[str, Tokens, int, Callable[[Tokens], Steps]], ...] = (
        ("vllm-ngram", tokens, 3, lambda t: stepped(t, one)),
        ("transformers", few, 2, lambda t: step_through(hf, t, FIRST)),
        ("arctic own tree", tokens, 1, lambda t: step_through(suffix[0], t, FIRST)),
        ("arctic global tree", tokens, 1, lambda t: step_through(suffix[1], t, FIRST)),
    )
    for name, given, repeats, run in ours:
        answer = ask_peer(name, given, repeats)
        if answer is None:
            continue
        steps = run(given)
        same = [len(steps.at), int(steps.drafted.sum()), int(steps.accepted.sum())] == [
            answer[key] for key in ("steps", "drafted", "accepted")
        ]
        note = f"{answer['version']}; {'the same' if same else 'OTHER'} steps, drafted, accepted as ours"
        emitted = output_tokens(given) - FIRST * len(given)
        yield Row(
            f"peer: {name}",
            output_tokens(given),
            answer["cpu_s"],
            emitted / answer["steps"],
            note=f"{note}, {len(given)} requests",
        )


def ask_peer(name: str, tokens: Tokens, repeats: int) -> dict[str, Any] | None:
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, tokens.ids.reshape(len(tokens), REQUEST_TOKENS))
        file.flush()
        answered = subprocess.run(
            [str(PEERS_PYTHON), str(PEERS), name, file.name, str(PROMPT_TOKENS), str(repeats)],
            capture_output=True,
            text=True,
            check=False,
        )
    if answered.returncode:
        print(f"peer: {name} is left out: {answered.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    answer: dict[str, Any] = orjson.loads(answered.stdout.splitlines()[-1])
    return answer


def timed(name: str, tokens: Tokens, repeats: int, run: Callable[[], Steps]) -> Row:
    """The best of several repeats, after one that compiles."""
    steps = run()
    cpu_s = min(cpu(run) for _ in range(repeats))
    emitted = output_tokens(tokens) - FIRST * len(tokens)
    return Row(name, output_tokens(tokens), cpu_s, emitted / len(steps.at))


def cpu(run: Callable[[], object]) -> float:
    """CPU seconds of this thread."""
    began_s = time.thread_time()
    run()
    return time.thread_time() - began_s


def stepped(tokens: Tokens, settings: VllmNgramSettings) -> Steps:
    return walk_table(VllmNgram(settings).table(tokens), tokens, FIRST)


def steps_of(tokens: Tokens, settings: list[VllmNgramSettings]) -> Iterator[Steps]:
    return (walk_table(table, tokens, FIRST) for table in VllmNgram.tables(tokens, settings))


def further_s(tokens: Tokens, settings: list[VllmNgramSettings]) -> float:
    """CPU seconds of each of the settings after the first, which pays for the look-ups."""
    steps = steps_of(tokens, settings)
    next(steps)
    return cpu(lambda: last(steps)) / (len(settings) - 1)


def last(items: Iterator[object]) -> None:
    for _ in items:
        pass


def part(tokens: Tokens, requests: int) -> Tokens:
    """The first requests."""
    return replace(
        tokens,
        ids=tokens.ids[: tokens.starts[requests]],
        starts=tokens.starts[: requests + 1],
        outputs=tokens.outputs[:requests],
        max_tokens=tokens.max_tokens[:requests],
        max_model_len=tokens.max_model_len[:requests],
    )


def output_tokens(tokens: Tokens) -> int:
    return int(tokens.positions[-1])


def shown(row: Row) -> str:
    speed = f"{row.tokens_per_s / 1e6:.3f} M tokens/s" if row.tokens_per_s else ""
    steps = f"{row.tokens_per_step:6.3f} tokens/step" if row.tokens_per_step else ""
    floor = f"floor: {row.floor}" if row.floor else ""
    return f"{row.name:45} {speed:>21} {steps:18}  {'; '.join(filter(None, (floor, row.note)))}".rstrip()


def save(tokens: Tokens, done: list[dict[str, Any]]) -> None:
    machine = {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "packages": {name: version(name) for name in ("numpy", "numba")} if COMPILED else {},
    }
    on = {"requests": len(tokens), "tokens": len(tokens.ids), "output_tokens": output_tokens(tokens)}
    RESULTS.parent.mkdir(exist_ok=True)
    report = {"machine": machine, "corpus": on, "rows": done}
    RESULTS.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
