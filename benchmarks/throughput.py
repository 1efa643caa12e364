"""Measured end-to-end throughput of n-gram speculation, against a simulation of the same outputs.

    python benchmarks/throughput.py [FILE] [--json]

FILE has the columns of benchmarks/data/measured_ngram_llama31_8b.csv, the default, whose results go to
benchmarks/results/throughput.json: Llama-3.1-8B on one H100, vLLM 0.10.1, n-gram with n from 3 to 7 (arXiv
2601.11580, figure 1, read off the plot to about 0.01). The outputs that the same study recorded are looked
for in ../shared/data/specdecode_bench_*.jsonl beside the repository; without them it exits with 2.

A row is predicted as the study measured it (scripts/bench_latency.py and scripts/vis_speedup.py of
github.com/SpecDecode-Bench/vllm): a batch is so many copies of one request, all there at once; its throughput
is their output tokens / the time until the last is done; the row is the mean throughput of all such batches
with speculation / without, over requests whose output ended by itself. The cost of a step is the study's own
regression. One constant is fitted, on the rows of batch FITTED_BATCHES alone: what a drafted step costs
beside its verification, for which the study has a share of it.

Beside that stand the same unfitted; with each data set predicted from the other's fit; with the outputs that
were cut off; the whole record as one load at that concurrency, requests leaving and coming, which is what
`breakeven forecast` simulates and the study did not measure; the steady-state formula of TPOT; and the
study's own simulator.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from throughput_batches import COST, Batches, Row, Trace, batches, batching, drafting, read, trace_of

from breakeven.cost.step import Step
from breakeven.errors import UsageError

FILE = Path(__file__).parent / "data" / "measured_ngram_llama31_8b.csv"
RESULT = Path(__file__).parent / "results" / "throughput.json"
DRAFTING_SHARE = 0.006
"""Of the verification: the study's drafting."""
FITTED_BATCHES = (1, 16)
MOST_DRAFTED_STEP_S = 5e-3
"""Up to which the fitted constant is looked for."""
STUDY_SIMULATOR = {("gsm8k", 64): 1.03, ("gsm8k", 128): 0.97, ("sharegpt", 64): 1.12, ("sharegpt", 128): 1.05}
"""By data set and batch, for a window of 3; at batch 1 it meets what was measured."""
PREDICTIONS = {
    "refitted": "batches of copies, refitted",
    "published_constants": "the same with the published constants",
    "leave_one_dataset_out": "the same fitted on the other data set",
    "refitted_with_cut_off": "refitted, outputs that were cut off included",
    "one_load": "the record as one load",
    "one_load_with_cut_off": "the record as one load, outputs that were cut off included",
    "steady_state": "steady-state formula",
    "steady_state_with_cut_off": "steady-state formula, outputs that were cut off included",
    "study_simulator": "the study's own simulator, at batch 64 and 128",
}
SHOWN = ("refitted", "published_constants", "one_load", "steady_state", "study_simulator")


def fit(rows: Iterable[Batches]) -> float:
    """Seconds of a drafted step beside its verification: least squares on the relative errors of the rows of
    FITTED_BATCHES, at least 0. There is one minimum, as every speedup falls with it."""
    used = [one for one in rows if one.row.batch in FITTED_BATCHES]
    if not used:
        raise UsageError(f"no row has a batch of {' or '.join(map(str, FITTED_BATCHES))}: nothing to fit on")

    def loss(drafted_step_s: float) -> float:
        return sum((one.speedup(drafted_step_s) / one.row.measured - 1) ** 2 for one in used)

    low, high = 0.0, MOST_DRAFTED_STEP_S
    for _ in range(60):
        third = (high - low) / 3
        if loss(low + third) <= loss(high - third):
            high -= third
        else:
            low += third
    return low


def fit_without(dataset: str, rows: Iterable[Batches]) -> float | None:
    """Fitted on the other data sets; None where there is no other."""
    others = [one for one in rows if one.row.dataset != dataset]
    return fit(others) if others else None


def one_load(row: Row, trace: Trace, drafted_step_s: float) -> float:
    """The whole record at once."""
    served = batching(row, trace)
    return served.plain_s / served.seconds(trace.steps, drafting(drafted_step_s))


def steady_state(row: Row, trace: Trace) -> float:
    """TPOT without / with: tokens per step · T / (T + f · V), where f of all steps draft."""
    steps, context = trace.steps, trace.requests.context_tokens
    plain, verify = (COST.seconds(Step(m, row.batch, context)).estimate for m in (1, 1 + row.k))
    per_step = float(trace.requests.emitted_tokens.sum() / len(steps.drafted))
    share = float((steps.drafted > 0).mean())
    return per_step * plain / (plain + share * ((1 + DRAFTING_SHARE) * verify - plain))


def report(rows: Sequence[Row]) -> dict[str, Any]:
    """Every prediction of every row, and their errors. Raises UsageError where outputs are not there."""
    traces = {key: trace_of(*key) for key in sorted({(row.dataset, row.k) for row in rows})}
    simulated = [batches(row, traces[row.dataset, row.k]) for row in rows]
    fitted = fit(simulated)
    without = {name: fit_without(name, simulated) for name, _ in traces}
    described = [
        described_row(one, traces[one.row.dataset, one.row.k], fitted, without[one.row.dataset])
        for one in simulated
    ]
    return {
        "constants": {
            "flat_ms": COST.flat_s * 1e3,
            "token_us": COST.token_s * 1e6,
            "cached_token_ns": COST.cached_s * 1e9,
            "drafting_share": DRAFTING_SHARE,
        },
        "fitted_on_batches": FITTED_BATCHES,
        "fitted_drafted_step_ms": fitted * 1e3,
        "fitted_without_ms": {name: None if s is None else s * 1e3 for name, s in without.items()},
        "outputs": {f"{name} k={k}": about(trace) for (name, k), trace in traces.items()},
        "errors": {key: summary(described, key) for key in PREDICTIONS},
        "rows": described,
    }


def described_row(one: Batches, trace: Trace, fitted: float, without: float | None) -> dict[str, Any]:
    """The row and each of PREDICTIONS; None where there is none."""
    row, ended = one.row, trace.taken(np.flatnonzero(trace.ended))
    verify_s = COST.seconds(Step(1 + row.k, row.batch, trace.requests.context_tokens)).estimate
    return {
        "dataset": row.dataset,
        "k": row.k,
        "batch": row.batch,
        "measured": row.measured,
        "refitted": one.speedup(fitted),
        "published_constants": one.speedup(DRAFTING_SHARE * verify_s),
        "leave_one_dataset_out": None if without is None else one.speedup(without),
        "refitted_with_cut_off": one.speedup(fitted, cut_off=True),
        "one_load": one_load(row, ended, fitted),
        "one_load_with_cut_off": one_load(row, trace, fitted),
        "steady_state": steady_state(row, ended),
        "steady_state_with_cut_off": steady_state(row, trace),
        "study_simulator": STUDY_SIMULATOR.get((row.dataset, row.batch)) if row.k == 3 else None,
    }


def about(trace: Trace) -> dict[str, int]:
    outputs = trace.requests.output_tokens
    return {
        "requests": len(outputs),
        "cut_off": int((~trace.ended).sum()),
        "flagged_as_loops": trace.loops,
        "output_tokens": int(outputs.sum()),
        "of_them_cut_off": int(outputs[~trace.ended].sum()),
    }


def summary(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float | int | None]:
    """Mean and worst of the relative errors' sizes."""
    sizes = [abs(row[key] / row["measured"] - 1) for row in rows if row[key] is not None]
    return {
        "predictions": len(sizes),
        "mean": sum(sizes) / len(sizes) if sizes else None,
        "worst": max(sizes, default=None),
    }


def show(result: Mapping[str, Any]) -> None:
    for key, words in PREDICTIONS.items():
        e = result["errors"][key]
        if e["predictions"]:
            print(f"{words:58} mean {e['mean']:6.1%}  worst {e['worst']:6.1%}  of {e['predictions']}")
    print(f"fitted, at least 0: a drafted step costs {result['fitted_drafted_step_ms']:.3f} ms ", end="")
    print("beside its verification", end="")
    for name, ms in result["fitted_without_ms"].items():
        print("" if ms is None else f"; without {name} {ms:.3f} ms", end="")
    print()
    for name, found in result["outputs"].items():
        print(f"{name}: {found['requests']} outputs, {found['flagged_as_loops']} flagged as loops, ", end="")
        print(f"{found['cut_off']} cut off, which hold {found['of_them_cut_off']:,} of ", end="")
        print(f"{found['output_tokens']:,} tokens")
    print(f"{'':8} k batch measured" + "".join(f"{key.replace('_', ' '):>21}" for key in SHOWN))
    for row in result["rows"]:
        print(f"{row['dataset']:8} {row['k']} {row['batch']:5} {row['measured']:8.2f}", end="")
        print("".join(f"{cell(row[key], row['measured']):>21}" for key in SHOWN))


def cell(value: float | None, measured: float) -> str:
    return "-" if value is None else f"{value:.3f} {value / measured - 1:+7.1%}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=FILE, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    args = parser.parse_args()
    try:
        result = report(read(args.file))
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    if args.file == FILE:
        RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if args.json:
        print(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
