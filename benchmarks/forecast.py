"""Forecast against measured decode speedups, on models that run here: a dense one, a mixture of experts.

    python benchmarks/forecast.py [--quick] [--models NAME …] [--windows K …] [--repeats N]

For each model: the concurrency curve of a baseline (what `breakeven calibrate` does), one run of it, and from
these two alone a forecast for each window of llama.cpp's ngram-simple. Then the truth: a baseline and a
candidate for each window, all up at once and asked in turn, prompt by prompt in rotating order, so that a
machine that drifts or wanders does so for all sides alike. Prints a table and writes
results/forecast-embedded.json; what that holds of models that are not named stays.

The mixture is no blind test: how far its neighbouring tokens share experts (cost/measured.py, REUSE) was
chosen with sight of its step times, among others.

The measured speedup and its interval are those of `breakeven trial`, the forecast's have the same definition:
baseline TPOT / candidate TPOT, the geometric mean over prompts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.metadata import version
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from breakeven.client import loop
from breakeven.client.asker import Asker
from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.pool import Pool
from breakeven.compare.comparison import compare_traces
from breakeven.cost.calibrate import CalibrationPlan, calibrate, concurrencies
from breakeven.cost.calibration import Calibration
from breakeven.cost.measured import Measured
from breakeven.drafters.registry import make_drafter
from breakeven.engines.llamacpp import LlamaSettings, baseline_settings
from breakeven.forecast.prefill import prefill_of_cost, prefill_of_run
from breakeven.forecast.records import Forecast
from breakeven.forecast.run import forecast_source
from breakeven.forecast.terms import Terms
from breakeven.measure import MeasurePlan, measure_endpoint
from breakeven.models.resolve import resolve
from breakeven.replay.sources import open_source
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trace.provenance import collect_client, load_average
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import load_run
from breakeven.workload.builtin import load_set
from breakeven.workload.prompts import Request, Sampling, Workload

RESULT = Path(__file__).parent / "results" / "forecast-embedded.json"
MODELS = {"smollm2": False, "smollm2-moe": True}
"""By name in the catalog: whether it is a mixture of experts."""
WINDOWS = (1, 2, 3, 5, 7)
DRAFTER = "llamacpp-ngram-simple"
LOOKUP_TOKENS = 3
"""Most tokens that must have occurred before a draft."""
LEAST_SEQUENCES = 8
"""Of the curve's last point."""
QUICK_STRIDE = 2
CLEAR = 0.05
"""A measured speedup further from 1 than this has a side that a forecast must get right."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    workload: Workload
    max_tokens: int
    repeats: int
    quick: bool

    @property
    def sampling(self) -> Sampling:
        return Sampling(max_tokens=self.max_tokens)


Traces = Mapping[int, Sequence[RequestTrace]]
"""By window; 0 is the baseline."""


def size_of(quick: bool, repeats: int | None, max_tokens: int | None) -> Size:
    whole = load_set("default")
    workload = replace(whole, prompts=whole.prompts[::QUICK_STRIDE]) if quick else whole
    workload = replace(workload, prompts=tuple(replace(one, max_tokens=None) for one in workload.prompts))
    return Size(workload, max_tokens or (64 if quick else 96), repeats or (2 if quick else 3), quick)


def settings_of(k: int) -> dict[str, int]:
    """Of the drafter at window k. llama.cpp drops drafts shorter than n."""
    return {"n": min(LOOKUP_TOKENS, k), "k": k}


def candidate(k: int) -> LlamaSettings:
    """The baseline, or with ngram-simple at window k."""
    if not k:
        return baseline_settings()
    flags = make_drafter(DRAFTER, settings_of(k)).flags()
    return LlamaSettings.parse(f"{baseline_settings().flags()} {flags}")


def tell(what: str) -> None:
    """How far it is; the table comes at the end."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


async def calibrated(model: Path, moe: bool, most: int, size: Size, out: Path) -> Calibration:
    """The concurrency curve of a baseline with a slot for each sequence."""
    one = baseline_settings()
    settings = replace(one, parallel=most, ctx_size=one.ctx_size * most, kv_unified=True)
    plan = CalibrationPlan(size.workload, size.sampling, concurrencies(most), size.quick)
    async with EmbeddedServer() as server:
        url = await server.start(model, settings, "m", out / "calibrate.log")
        return await calibrate(
            Endpoint(url, model="m"), plan, out / "calibration", moe=moe, kv_unified=settings.kv_unified
        )


async def measured(model: Path, windows: Sequence[int], size: Size, out: Path) -> Traces:
    """Traces of all sides, asked in turn; before that the run in `out`/run, of the baseline alone."""
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(Pool())
        sides: dict[int, Asker] = {}
        for k in (0, *windows):
            server = await stack.enter_async_context(EmbeddedServer())
            url = await server.start(model, candidate(k), "m", out / f"window-{k}.log")
            sides[k] = await Asker.find(pool, Endpoint(url, model="m"), size.sampling)
        plan = MeasurePlan(size.workload, size.sampling, ClosedLoop(1))
        await measure_endpoint(sides[0].endpoint, plan, out / "run")
        traces: dict[int, list[RequestTrace]] = defaultdict(list)
        for k, request in in_turn(tuple(sides), size):
            traces[k].append(await sides[k].ask(request, time.perf_counter_ns()))
    return traces


def in_turn(sides: Sequence[int], size: Size) -> Iterator[tuple[int, Request]]:
    """All sides for each prompt, another one first each time, and every second time backwards."""
    turn = count()
    for repeat in range(size.repeats):
        tell(f"repeat {repeat + 1} of {size.repeats}")
        for prompt in size.workload.prompts:
            i = next(turn)
            order = (*sides[i // 2 % len(sides) :], *sides[: i // 2 % len(sides)])
            yield from ((k, Request(prompt, repeat)) for k in order[:: -1 if i % 2 else 1])


def forecast(folder: Path, cost: Measured, windows: Sequence[int]) -> Forecast:
    """From the run in `folder` and the curve alone."""
    prefill = prefill_of_run(load_run(folder)) or prefill_of_cost(cost)
    grid = [(DRAFTER, settings_of(k)) for k in windows]
    terms = Terms(cost, "the baseline's own concurrency curve", (1,))
    return forecast_source(open_source(folder), terms, grid, prefill)


def counted(traces: Sequence[RequestTrace]) -> tuple[int, int]:
    """Drafted and accepted tokens of the first repeat, as the server says."""
    first = [trace.speculation for trace in traces if trace.repeat == 0 and trace.speculation]
    return sum(one.drafted_tokens or 0 for one in first), sum(one.accepted_tokens or 0 for one in first)


def rows(model: str, traces: Traces, made: Forecast) -> list[dict[str, Any]]:
    """A row for each window: what was measured, what was forecast, and how far they are apart."""
    found = []
    for row in sorted(made.rows, key=lambda row: row.settings["k"]):
        k = row.settings["k"]
        compared = compare_traces(traces[0], traces[k], temperature=0.0)
        if compared.speedup is None:
            raise SystemExit(f"{model} at window {k}: no request was answered on both sides")
        drafted, accepted = counted(traces[k])
        said = row.cells[0].speedup
        found.append(
            {
                "model": model,
                "window": k,
                "flags": row.flags,
                "measured": asdict(compared.speedup),
                "forecast": asdict(said),
                "error": said.estimate / compared.speedup.estimate - 1,
                "repeats": compared.repeats,
                "identical_replies": [compared.lossless.identical, compared.lossless.compared],
                "drafted_tokens": {"server": drafted, "replay": row.counters.drafted_tokens},
                "accepted_tokens": {"server": accepted, "replay": row.counters.accepted_tokens},
                "step_ratio": asdict(row.cells[0].step_ratio),
            }
        )
    return found


def summary(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How far off, and whether each side of 1 is right where the measured speedup is far from it."""
    errors = [abs(row["error"]) for row in found]
    ratios = [(row["measured"]["estimate"], row["forecast"]["estimate"]) for row in found]
    clear = [(truth, said) for truth, said in ratios if abs(truth - 1) > CLEAR]
    both = [(row["measured"], row["forecast"]) for row in found]
    overlap = [truth["low"] <= said["high"] and said["low"] <= truth["high"] for truth, said in both]
    return {
        "rows": len(found),
        "median_error": median(errors),
        "worst_error": max(errors),
        "clear_rows": len(clear),
        "right_side": sum((truth > 1) == (said > 1) for truth, said in clear),
        "intervals_overlap": sum(overlap),
    }


def show(found: Sequence[Mapping[str, Any]], summed: Mapping[str, Any]) -> None:
    table = Table(
        title="Decode speedup of ngram-simple, forecast and measured", box=SIMPLE_HEAD, show_edge=False
    )
    for name in ("model", "k", "accepted", "measured", "forecast", "error"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for row in found:
        accepted = f"{row['accepted_tokens']['server']}/{row['drafted_tokens']['server']}"
        ratios = (_interval(row[name]) for name in ("measured", "forecast"))
        table.add_row(row["model"], str(row["window"]), accepted, *ratios, f"{row['error']:+.1%}")
    Console().print(table)
    print(
        f"median |error| {summed['median_error']:.1%}, worst {summed['worst_error']:.1%}; "
        f"right side of 1 in {summed['right_side']} of {summed['clear_rows']} rows that are more than "
        f"{CLEAR:.0%} from it; intervals overlap in {summed['intervals_overlap']} of {summed['rows']}"
    )


def _interval(value: Mapping[str, float]) -> str:
    return f"{value['estimate']:.2f} ({value['low']:.2f}–{value['high']:.2f})"


def one_model(name: str, windows: Sequence[int], size: Size, folder: Path) -> dict[str, Any]:
    """The curve, the run, the forecast, and what was measured."""
    model, out = resolve(name), folder / name
    most = max(LEAST_SEQUENCES, max(windows) + 1)
    tell(f"{name}: the curve, then {size.repeats} repeats")
    calibration = loop.run(calibrated(model, MODELS[name], most, size, out))
    cost = Measured(calibration.curve(), MODELS[name])
    traces = loop.run(measured(model, windows, size, out))
    made = forecast(out / "run", cost, windows)
    points = [
        {"sequences": point.concurrency, "step_s": point.step_s, "low_s": point.low_s, "high_s": point.high_s}
        for point in calibration.points
    ]
    return {"curve": points, "notes": calibration.warnings(), "rows": rows(name, traces, made)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--windows", nargs="+", type=int, default=WINDOWS)
    parser.add_argument("--repeats", type=int, help="of every prompt on every side")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--quick", action="store_true", help="fewer prompts, shorter replies, two repeats")
    parser.add_argument("--out", type=Path, default=RESULT, help="the JSON file")
    options = parser.parse_args()
    size = size_of(options.quick, options.repeats, options.max_tokens)
    models = kept(options.out)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            began, load = time.monotonic(), load_average()
            made = one_model(name, options.windows, size, Path(folder))
            models[name] = about(size, began, load) | made
    found = [row for name in MODELS if name in models for row in models[name]["rows"]]
    summed = summary(found)
    show(found, summed)
    options.out.parent.mkdir(exist_ok=True)
    value = {"summary": summed, "models": models}
    options.out.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    print(f"{options.out} written")


def kept(path: Path) -> dict[str, Any]:
    """What the file holds by model: those that are not measured now stay as they are."""
    models: dict[str, Any] = orjson.loads(path.read_bytes())["models"] if path.exists() else {}
    return models


def about(size: Size, began: float, load: tuple[float, ...] | None) -> dict[str, Any]:
    """How a model was measured, since `began` on time.monotonic."""
    return {
        "measured_on": date.today().isoformat(),
        "prompts": len(size.workload.prompts),
        "max_tokens": size.max_tokens,
        "repeats": size.repeats,
        "breakeven": version("breakeven"),
        "xllamacpp": version("xllamacpp"),
        "client": asdict(collect_client("")),
        "load_average": {"start": load, "end": load_average()},
        "elapsed_s": round(time.monotonic() - began),
    }


if __name__ == "__main__":
    main()
