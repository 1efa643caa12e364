"""Calibrate: the concurrency curve of a running baseline, measured by `measure`'s own client.

Each concurrency is a closed loop and a run of its own, in the folder `concurrency-N`; calibration.json beside
them is written again after each. What a step took is read from the events' times: see stretches.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.prometheus import ENGINE_NAMES
from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.openai import DEFAULT_TIMEOUTS, Timeouts
from breakeven.client.transport import Pool
from breakeven.cost.calibration import FILE, Calibration, save_calibration
from breakeven.cost.curve import LEAST_POINTS, CurvePoint
from breakeven.cost.stretches import point
from breakeven.errors import UsageError
from breakeven.latency.tokens import total
from breakeven.measure import Asker, MeasurePlan, OnTrace, describe, measure_endpoint
from breakeven.trace.records import Kind, RequestTrace
from breakeven.trace.run import Run, RunMeta
from breakeven.workload.prompts import Sampling, Workload

CONCURRENCIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
QUICK_CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LEAST_REQUESTS = 6
"""At concurrency 1, and until two requests for each in flight are more."""
MOST_BUNDLED = 1.1
"""Tokens per chunk above which a reply looks like one that was speculated."""


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """What is asked at which concurrencies. Raises UsageError for fewer than LEAST_POINTS of them."""

    workload: Workload
    sampling: Sampling
    concurrencies: tuple[int, ...]
    """Rising, from 1."""
    quick: bool = False
    """One request for each in flight in place of two."""

    def __post_init__(self) -> None:
        if len(self.concurrencies) < LEAST_POINTS:
            raise UsageError(
                f"a curve needs {LEAST_POINTS} points, and there would be {len(self.concurrencies)}: "
                "type --max-concurrency 4 or more"
            )

    def measure_plan(self, concurrency: int) -> MeasurePlan:
        """Two requests (--quick: one) for each in flight, from the same first prompts; all of one length.

        A prompt's own max_tokens does not count here.
        """
        wanted = max(LEAST_REQUESTS, concurrency * 2) // (2 if self.quick else 1)
        n_requests = max(wanted, concurrency)
        repeats = -(-n_requests // len(self.workload.prompts))
        asked = self.workload.prompts[: -(-n_requests // repeats)]
        prompts = tuple(replace(prompt, max_tokens=None) for prompt in asked)
        return MeasurePlan(
            replace(self.workload, prompts=prompts), self.sampling, ClosedLoop(concurrency), repeats
        )

    def steps(self, concurrency: int) -> int:
        """Decode steps that one request stands for, which others share: the unit of progress."""
        return max(round(self.sampling.max_tokens / concurrency), 1)

    def total_steps(self) -> int:
        """Of all concurrencies, if every reply has its full length."""
        return sum(self.measure_plan(c).requests * self.steps(c) for c in self.concurrencies)


def concurrencies(most: int, quick: bool = False) -> tuple[int, ...]:
    """Those measured up to `most`, which is always among them."""
    levels = QUICK_CONCURRENCIES if quick else CONCURRENCIES
    return (*(c for c in levels if c < most), most)


class Watch:
    """Told how a calibration goes on. This one is deaf."""

    def begins(self, concurrency: int) -> None:
        """A concurrency is measured from now on."""

    def asked(self, concurrency: int, trace: RequestTrace) -> None:
        """One of its requests has ended."""


async def calibrate(
    endpoint: Endpoint,
    plan: CalibrationPlan,
    out: Path,
    *,
    moe: bool | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    watch: Watch | None = None,
) -> Calibration:
    """Measure one concurrency after the other, and write calibration.json into `out` after each.

    Ends early, and says so in `notes`, at the first concurrency that the server does not decode at once.
    Raises UsageError when the server speculates, and then leaves no calibration.json; for the rest what
    `measure_endpoint` raises: the points measured until then are in the file.
    """
    heard = watch or Watch()
    kept = await _begin(endpoint, plan, moe, timeouts)
    for concurrency in plan.concurrencies:
        heard.begins(concurrency)
        run = await measure_endpoint(
            endpoint,
            plan.measure_plan(concurrency),
            out / f"concurrency-{concurrency}",
            timeouts=timeouts,
            on_trace=_telling(heard, concurrency),
        )
        traces = tuple(run.traces())
        try:
            refuse_speculation(run.meta.counters, *(trace.speculation for trace in traces))
        except UsageError:
            (out / FILE).unlink(missing_ok=True)
            raise
        kept = _with_point(kept, run, traces, concurrency)
        save_calibration(kept, out / FILE)
        if (_peak(run.meta) or concurrency) < concurrency:
            break
    kept = replace(kept, complete=True)
    save_calibration(kept, out / FILE)
    return kept


async def _begin(
    endpoint: Endpoint, plan: CalibrationPlan, moe: bool | None, timeouts: Timeouts
) -> Calibration:
    """A calibration without points yet, of the server that answers there.

    Refuses one that ever drafted: its counters are of its whole life, in which no engine switches speculation
    on or off.
    """
    async with Pool() as pool:
        asker = await Asker.find(pool, endpoint, plan.sampling, timeouts)
        refuse_speculation(await asker.page())
        return _begun(describe(asker, plan.measure_plan(1)), plan, moe)


def refuse_speculation(*counted: SpecCounters | None) -> None:
    """Raises UsageError where drafts were counted: steps of that server carry more tokens than sequences."""
    for counters in counted:
        if counters is not None and (counters.drafts or counters.drafted_tokens):
            n = counters.drafted_tokens or counters.drafts
            raise UsageError(
                f"the server speculates ({counters.source or 'it'} counted {n:,} drafted tokens): a "
                "calibration needs the baseline; start it without its speculation flags (vLLM: "
                "--speculative-config, SGLang: --speculative-algorithm, llama.cpp: --spec-type or a draft "
                "model), then type  breakeven calibrate URL"
            )


def _telling(watch: Watch, concurrency: int) -> OnTrace:
    return lambda trace: watch.asked(concurrency, trace)


def _begun(meta: RunMeta, plan: CalibrationPlan, moe: bool | None) -> Calibration:
    return Calibration(
        created=meta.created,
        breakeven_version=meta.breakeven_version,
        url=meta.url,
        api=meta.api,
        model=meta.model,
        server=meta.server,
        workload=plan.workload.name,
        max_tokens=plan.sampling.max_tokens,
        moe=moe,
        notes=plan.workload.warnings,
    )


def _with_point(kept: Calibration, run: Run, traces: Sequence[RequestTrace], concurrency: int) -> Calibration:
    check: dict[str, Any] = dict(run.meta.self_check or {})
    reasons = tuple(_advice(reason) for reason in check.get("reasons", ()))
    found = point(traces, concurrency, reasons, _lag_s(run.meta))
    notes = [_failed(traces, concurrency), _bundles(traces, concurrency)]
    notes += [_idle(run.meta), _uncounted(traces)]
    if found is None:
        notes.append(_missing(concurrency, _peak(run.meta), reasons))
    points: tuple[CurvePoint, ...] = kept.points if found is None else (*kept.points, found)
    said = dict.fromkeys((*kept.notes, *(note for note in notes if note)))
    return replace(kept, points=points, notes=tuple(said))


def _lag_s(meta: RunMeta) -> float:
    """How late the client read at times (p99); 0 where it was not seen."""
    lag_ms = ((meta.self_check or {}).get("event_loop_lag_ms") or {}).get("p99")
    return (lag_ms or 0.0) / 1e3


def _peak(meta: RunMeta) -> int | None:
    """Replies that were decoded at once, at most; None where no reply took any time to decode."""
    peak = (meta.self_check or {}).get("decoding_peak")
    return peak if isinstance(peak, int) else None


def _bundles(traces: Sequence[RequestTrace], concurrency: int) -> str | None:
    counts = [event.n_tokens for trace in traces for event in trace.events if event.kind is not Kind.END]
    known = [n for n in counts if n]
    if not known or sum(known) <= MOST_BUNDLED * len(known):
        return None
    return (
        f"at concurrency {concurrency} a chunk carries {sum(known) / len(known):.2g} tokens on average: if "
        "the server speculates without counting it, this is no baseline"
    )


def _advice(reason: str) -> str:
    """The client's self-check speaks of measure's option; this verb has another."""
    return reason.replace("--concurrency", "--max-concurrency")


def _failed(traces: Sequence[RequestTrace], concurrency: int) -> str | None:
    errors = [trace.error.message for trace in traces if trace.error is not None]
    if not errors:
        return None
    of = f"{len(errors)} of {len(traces)} requests failed"
    return f"at concurrency {concurrency} {of}, the last with: {errors[-1]}"


def _uncounted(traces: Sequence[RequestTrace]) -> str | None:
    if not any(trace.error is None and total(trace).source == "chunks" for trace in traces):
        return None
    return (
        "the server does not count tokens, each chunk was taken for one: where chunks carry several, a step "
        "takes less than is said here"
    )


def _idle(meta: RunMeta) -> str | None:
    """vLLM counts drafts only where speculation is on; it takes its time also where nothing is drafted."""
    if meta.counters is None or meta.counters.source != ENGINE_NAMES["vllm"]:
        return None
    return (
        "the server counts drafts, though there were none: speculation seems to be on, and slows plain steps "
        "too; start it without --speculative-config"
    )


def _missing(concurrency: int, peak: int | None, reasons: Sequence[str]) -> str:
    if peak is not None and peak < concurrency:
        return (
            f"concurrency {concurrency} and above have no point: the server decoded at most {peak} at once; "
            "give it more slots (llama.cpp: --parallel, vLLM: --max-num-seqs), or replies that outlast the "
            "prefill of the others (--max-tokens)"
        )
    if reasons:
        return f"concurrency {concurrency} has no point: {'; '.join(reasons)}"
    return (
        f"concurrency {concurrency} has no point: with that many replies decoded at once there were too few "
        "steps; raise --max-tokens, or where replies end by themselves add  --extra ignore_eos=true"
    )
