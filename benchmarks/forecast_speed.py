"""How long a forecast takes: from a record and a calibration to all windows at all concurrencies.

    python benchmarks/forecast_speed.py [--repeats N]

The record is a file of REQUESTS requests with OUTPUT_TOKENS output tokens in all: Python source
(replay_corpus.py), outputs of unlike lengths, four categories. The calibration is a curve of eight points.
Forecast are the windows 1 … 24 of vllm-ngram at 8 concurrencies, and an oracle for each window, on all cores.
Timed is what `breakeven forecast` does with them after its start: opening and reading the file, looking for
random prompts, replaying, and both speedups of every setting at every concurrency with their intervals.

The first forecast compiles, or loads what was compiled before; it is timed and left out of the medians.
Throughput alone is the simulation of the batches, which the whole contains. CPU seconds are of all threads.
Prints each row and writes results/forecast_speed.json.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from replay_corpus import PROMPT_TOKENS, REQUEST_TOKENS, corpus

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.measured import Measured
from breakeven.drafters.compiler import COMPILED
from breakeven.forecast.collect import collect
from breakeven.forecast.collected import SettingSteps
from breakeven.forecast.prefill import prefill_of_cost
from breakeven.forecast.random_tokens import refuse_random_prompts
from breakeven.forecast.records import Forecast
from breakeven.forecast.run import forecast_source
from breakeven.forecast.simulate import Batching
from breakeven.forecast.terms import Terms
from breakeven.interval import Interval
from breakeven.replay.sources import open_source
from breakeven.replay.workers import workers

RESULT = Path(__file__).parent / "results" / "forecast_speed.json"
REQUESTS, OUTPUT_TOKENS = 300, 50_000
CATEGORIES = ("one", "two", "three", "four")
GRID = [("vllm-ngram", {"k": k, "min_n": 2, "max_n": 4}) for k in range(1, 25)]
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128)
STEPS_MS = {1: 7.1, 2: 7.2, 4: 7.3, 8: 7.4, 16: 7.5, 32: 7.9, 64: 8.6, 128: 10.2}
"""Of the calibration. A forecast takes as long whatever they are."""
COST = Measured(
    Curve(
        tuple(CurvePoint(c, ms / 1e3, 0.99e-3 * ms, 1.01e-3 * ms, 50) for c, ms in STEPS_MS.items()),
        moe=False,
    ),
    moe=False,
)


@dataclass(frozen=True)
class Row:
    """What was timed, and how long it took."""

    name: str
    wall_s: float
    cpu_s: float
    repeats: int


def write_record(path: Path) -> None:
    """JSON lines, as a file of recorded traffic has them."""
    ids = corpus(REQUESTS).ids.reshape(REQUESTS, REQUEST_TOKENS)
    lines = [
        {
            "id": str(i),
            "category": CATEGORIES[i % len(CATEGORIES)],
            "prompt_token_ids": ids[i, PROMPT_TOKENS // 2 : PROMPT_TOKENS].tolist(),
            "output_token_ids": ids[i, PROMPT_TOKENS : PROMPT_TOKENS + length].tolist(),
        }
        for i, length in enumerate(output_lengths().tolist())
    ]
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")


def output_lengths() -> NDArray[np.int64]:
    """REQUESTS lengths that sum to OUTPUT_TOKENS: log-normal, the longest some ten times the median."""
    drawn = np.random.default_rng(1).lognormal(sigma=0.8, size=REQUESTS)
    ends = np.round(np.cumsum(drawn) / drawn.sum() * OUTPUT_TOKENS)
    lengths: NDArray[np.int64] = np.diff(ends, prepend=0).astype(np.int64)
    return lengths


def forecast(path: Path) -> Forecast:
    """The whole, as the command does it."""
    source = open_source(path)
    refuse_random_prompts(source)
    terms = Terms(COST, "a calibration", CONCURRENCIES)
    return forecast_source(source, terms, GRID, prefill_of_cost(COST))


def throughputs(path: Path) -> Callable[[], list[Interval]]:
    """The simulations of all settings at all concurrencies, on steps that are there already."""
    terms = Terms(COST, "a calibration", CONCURRENCIES)
    oracles = [("oracle", {"k": settings["k"]}) for _, settings in GRID]
    requests, steps = collect(open_source(path), [*GRID, *oracles], "prefill")
    longest = max(int(one.drafted.max(initial=0)) for one in steps)
    prefill_s = prefill_of_cost(COST).seconds_per_token

    def served(batching: Batching, one: SettingSteps) -> Interval:
        return batching.speedup(one, terms.drafting_of(one.drafter))

    def run() -> list[Interval]:
        found: list[Interval] = []
        for concurrency in CONCURRENCIES:
            batching = Batching(requests, COST, concurrency, longest, prefill_s)
            found.extend(workers(None, threads=True).map(partial(served, batching), steps))
        return found

    return run


def timed(name: str, run: Callable[[], object], repeats: int) -> Row:
    """Medians of several repeats."""
    pairs = [_once(run) for _ in range(repeats)]
    walls, cpus = zip(*pairs, strict=True)
    return Row(name, median(walls), median(cpus), repeats)


def _once(run: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def measured(path: Path, repeats: int) -> list[Row]:
    first = timed("the first forecast of the process", lambda: forecast(path), 1)
    whole = timed("the whole forecast", lambda: forecast(path), repeats)
    simulated = timed("of it throughput, by simulation", throughputs(path), repeats)
    return [first, whole, simulated]


def report(rows: list[Row], load: tuple[float, float, float]) -> dict[str, Any]:
    return {
        "machine": {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "load": {"start": load, "end": os.getloadavg()},
            "packages": {name: version(name) for name in ("numpy", "numba")} if COMPILED else {},
        },
        "record": {"requests": REQUESTS, "output_tokens": OUTPUT_TOKENS},
        "windows": len(GRID),
        "concurrencies": CONCURRENCIES,
        "rows": [asdict(row) for row in rows],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.jsonl"
        write_record(path)
        rows = measured(path, options.repeats)
    for row in rows:
        print(f"{row.name:35} {row.wall_s:7.3f} s, {row.cpu_s:7.3f} CPU-seconds, median of {row.repeats}")
    RESULT.write_bytes(orjson.dumps(report(rows, load), option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
