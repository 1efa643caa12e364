"""The guard on recorded outputs, against the best fixed setting chosen in hindsight, at five costs of a step.

    python benchmarks/guard.py [FILE …] [--json] [--epsilon E] [--concurrency C …]

FILE is any record of `breakeven replay`; by default the outputs of Llama-3.1-8B that SpecDecode-Bench
recorded, in ../shared/data/specdecode_bench_*.jsonl beside the repository. The results of these go to
benchmarks/results/guard.json, unless another E or C is asked for. Files that are not there are skipped, and
said to be. The costs:

dense-8b-h100   the regression of measured steps of the same study (throughput_batches.py)
moe-vllm-cpu    a MoE of 32 experts, 4 of them for a token, in vLLM 0.32 on a CPU, measured: one sequence that
                verifies 0 to 7 drafted tokens, all of them wrong, medians of 3
moe-llamacpp    a MoE of 64 experts, 8 of them for a token, in llama.cpp on two cores, measured: steps of 1 to
                16 tokens of one sequence, relative to the first
kimi-k2.5       on 8 x RTX PRO 6000, by geometry and data sheet (cost/modelled.py)
kimi-k2.5-flat  the same, with 4 ms more for each step with drafts

Beyond the last measured point a curve goes on along its last slope. Nothing else that speculation costs is in
these figures: no time of the drafter, and none of an engine that has one.

Besides, the guard decodes several requests at a time, through its policy (--concurrency, 4 and 8 unless
given); the best fixed setting stands beside it by the mean field of a forecast.

Exits with 1 where the guard falls below FLOOR of the best fixed setting on a record, or a request of it below
1 − ε of no speculation; with 2 where there is no record at all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from throughput_batches import COST, TRACES

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.drafting import DraftingCost
from breakeven.cost.hardware import hardware
from breakeven.cost.measured import Measured
from breakeven.cost.modelled import Modelled
from breakeven.cost.presets import preset
from breakeven.cost.step import StepCost
from breakeven.errors import UsageError
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.records import NO_EPSILON, AtConcurrency, Played, Simulation
from breakeven.guard.simulate.run import simulate_source
from breakeven.guard.simulate.terms import Terms
from breakeven.interval import Interval
from breakeven.replay.grid import N_RANGES, default_grid
from breakeven.replay.sources import open_source

RESULT = Path(__file__).parent / "results" / "guard.json"
NAMES = ("gsm8k", "sharegpt", "cnn", "instructcoder")
FILES = tuple(TRACES / f"specdecode_bench_{name}.jsonl" for name in NAMES)
FLOOR = 0.98
"""Of the best fixed setting's speedup."""
KS = tuple(range(1, 11))
LEVELS = (4, 8)
"""Requests at a time, where none are asked for."""
SHOWN = {"k": 5, "min_n": 4, "max_n": 4}
"""A fixed setting as people type it."""
EPSILONS = (0.01, NO_EPSILON)
"""Beside the one that is judged."""
FLAT_S = 4e-3
VLLM_CPU_MS = {1: 13.1, 2: 17.1, 3: 19.9, 4: 19.9, 6: 21.3, 8: 25.5}
LLAMACPP_RELATIVE = {1: 1.0, 2: 1.76, 4: 2.90, 8: 4.59, 16: 7.09}


def curve(seconds: Mapping[int, float]) -> Measured:
    """Of one sequence that verifies: no reuse of experts is to be taken off again."""
    points = tuple(CurvePoint(tokens, s, s, s, 3) for tokens, s in seconds.items())
    return Measured(Curve(points), moe=False)


def drafting(drafted_step_s: float = 0.0) -> DraftingCost:
    """Nothing but a flat cost of steps with drafts."""
    nothing, flat = (Interval(s, s, s) for s in (0.0, drafted_step_s))
    said = (
        f"{drafted_step_s * 1e3:g} ms for steps with drafts" if drafted_step_s else "drafting costs nothing"
    )
    return DraftingCost(nothing, flat, nothing, said)


def costs() -> dict[str, tuple[StepCost, DraftingCost]]:
    """By name, in the order of the table."""
    kimi = Modelled(preset("kimi-k2.5"), hardware("rtx-pro-6000-ws"), tp=8)
    return {
        "dense-8b-h100": (COST, drafting()),
        "moe-vllm-cpu": (curve({n: ms / 1e3 for n, ms in VLLM_CPU_MS.items()}), drafting()),
        "moe-llamacpp": (curve(LLAMACPP_RELATIVE), drafting()),
        "kimi-k2.5": (kimi, drafting()),
        "kimi-k2.5-flat": (kimi, drafting(FLAT_S)),
    }


def simulated(
    file: Path,
    cost: StepCost,
    drafting: DraftingCost,
    settings: GuardSettings,
    concurrencies: Sequence[int] = (),
) -> Simulation:
    """One record at one cost."""
    grid = default_grid(("vllm-ngram",), KS, (*N_RANGES, (4, 4)))
    words = "a cost of this benchmark"
    levels = (1, *concurrencies)
    terms = Terms(cost, words, drafting, "vllm", grid, settings, EPSILONS, levels)
    return simulate_source(open_source(file), terms, jobs=1)


def row(name: str, file: Path, made: Simulation) -> dict[str, Any]:
    """The figures of one record at one cost."""
    best = made.best_fixed
    if best is None:
        raise SystemExit("no fixed setting was tried")
    shown = next(one for one in made.fixed if SHOWN.items() <= one.settings.items())
    others = {one.epsilon: one.guard for one in made.by_epsilon}
    return {
        "cost": name,
        "record": file.stem.removeprefix("specdecode_bench_"),
        "requests": made.requests,
        "output_tokens": made.output_tokens,
        "guard": figures(made.guard),
        "best_fixed": {"name": best.name, **figures(best)},
        "of_best_fixed": made.guard.speed.speedup / best.speed.speedup,
        "test_and_set": figures(made.test_and_set),
        "oracle": figures(made.oracle),
        "as_typed": {"name": shown.name, **figures(shown)},
        "guard_epsilon_1_percent": figures(others[EPSILONS[0]]),
        "guard_without_ledger": figures(others[NO_EPSILON]),
        "by_concurrency": [together(one) for one in made.by_concurrency],
    }


def together(one: AtConcurrency) -> dict[str, Any]:
    best = one.best_fixed
    return {
        "concurrency": one.concurrency,
        "guard": figures(one.guard),
        "reasons": dict(one.reasons),
        "best_fixed": None if best is None else {"name": best.name, **figures(best)},
    }


def figures(one: Played) -> dict[str, float]:
    speed = one.speed
    return {
        "speedup": speed.speedup,
        "total": speed.total,
        "worst": speed.worst.speedup,
        "worst_tokens": speed.worst.emitted_tokens,
    }


def failures(rows: Sequence[Mapping[str, Any]], epsilon: float) -> list[str]:
    """What is below its floor, each a sentence."""
    said = []
    for one in rows:
        where = f"{one['cost']} on {one['record']}"
        if one["of_best_fixed"] < FLOOR:
            said.append(f"{where}: {one['of_best_fixed']:.4f} of the best fixed setting, below {FLOOR}")
        if one["guard"]["worst"] < 1 - epsilon:
            said.append(f"{where}: a request at {one['guard']['worst']:.4f}, below {1 - epsilon:g}")
    return said


def show(rows: Sequence[Mapping[str, Any]], epsilon: float) -> None:
    table = Table(title=f"Decode speedups; guard with ε = {epsilon:.1%}", box=SIMPLE_HEAD, show_edge=False)
    headers = ("guard", "of best", "worst", "best fixed", "worst", "test-and-set", "worst", "oracle", "k5 n4")
    for name in ("cost", "record", *headers, "worst", "ε 1 %", "worst", "no ledger", "worst"):
        table.add_column(name, justify="left" if name in ("cost", "record") else "right")
    for one in rows:
        pairs = ("best_fixed", "test_and_set")
        later = ("as_typed", "guard_epsilon_1_percent", "guard_without_ledger")
        table.add_row(
            one["cost"],
            one["record"],
            *(f"{x:.3f}" for x in (one["guard"]["speedup"], one["of_best_fixed"], one["guard"]["worst"])),
            *(f"{one[key][name]:.3f}" for key in pairs for name in ("speedup", "worst")),
            f"{one['oracle']['speedup']:.3f}",
            *(f"{one[key][name]:.3f}" for key in later for name in ("speedup", "worst")),
        )
    Console(width=190).print(table)
    show_together(rows)
    print(
        "speedup: plain steps / time in plain steps, the geometric mean over requests; worst: of one request"
    )


def show_together(rows: Sequence[Mapping[str, Any]]) -> None:
    """A line for each record, cost and concurrency."""
    for one in rows:
        for at in one["by_concurrency"]:
            guard, best = at["guard"], at["best_fixed"]
            print(
                f"{one['cost']:15} {one['record']:10} {at['concurrency']:3} at a time: guard "
                f"{guard['speedup']:.3f} (worst {guard['worst']:.3f}), best fixed {best['speedup']:.3f} "
                f"(worst {best['worst']:.3f})"
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--epsilon", type=float, default=GuardSettings().epsilon)
    parser.add_argument("--concurrency", type=int, nargs="*", default=LEVELS, metavar="C")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    args = parser.parse_args()
    as_kept = not args.files and (args.epsilon, args.concurrency) == (GuardSettings().epsilon, LEVELS)
    try:
        return run(args.files or FILES, args.epsilon, args.concurrency, args.json, save=as_kept)
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code


def run(
    files: Sequence[Path], epsilon: float, concurrencies: Sequence[int], as_json: bool, save: bool
) -> int:
    """All files at all costs. Raises UsageError for a record that is none."""
    began = time.monotonic()
    there = [file for file in files if file.exists()]
    for file in files:
        if file not in there:
            print(f"skipped: there is no {file}", file=sys.stderr)
    if not there:
        raise UsageError("no record is there to simulate: type  python benchmarks/guard.py FILE")
    settings = replace(GuardSettings(), epsilon=epsilon)
    rows = [
        row(name, file, simulated(file, cost, drafting, settings, concurrencies))
        for name, (cost, drafting) in costs().items()
        for file in there
    ]
    failed = failures(rows, epsilon)
    result = {
        "epsilon": epsilon,
        "breakeven": version("breakeven"),
        "rows": rows,
        "failures": failed,
        "elapsed_s": round(time.monotonic() - began, 1),
    }
    packed = orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if save:
        RESULT.write_bytes(packed)
    if as_json:
        sys.stdout.write(packed.decode())
    else:
        show(rows, epsilon)
    for one in failed:
        print(f"FAILED {one}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
