"""Calibrate: the concurrency curve of a running baseline, measured by `measure`'s own client.

Concurrencies are visited up and then down again, as the machine may change meanwhile: a steady drift falls on
all alike, and how far two visits to the same one differ tells of any other (see visits.py). Where they differ
by more than their scatter explains, they are visited up and down once more, MOST_ROUNDS times at most. Each
visit is a closed loop and a run of its own, in the folder `concurrency-N`, `concurrency-N-again`, and so on;
calibration.json beside them is written again after each. What a step took is read from the events' times: see
stretches.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakeven.acceptance.counters import SpecCounters
from breakeven.client.asker import Asker
from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop
from breakeven.client.openai import DEFAULT_TIMEOUTS, Timeouts
from breakeven.client.transport import Pool
from breakeven.cost.calibrate_notes import (
    APART_NOTE,
    decoding_peak,
    doubts,
    missing_note,
    notes_of,
    slots_note,
)
from breakeven.cost.calibration import FILE, Calibration, save_calibration
from breakeven.cost.curve import LEAST_POINTS
from breakeven.cost.stretches import point
from breakeven.cost.visits import differing, with_visit
from breakeven.errors import EndpointError, UsageError
from breakeven.measure import MeasurePlan, OnTrace, describe, measure_endpoint
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run, RunMeta
from breakeven.workload.prompts import Sampling, Workload

CONCURRENCIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
QUICK_CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LEAST_REQUESTS = 6
"""Of all visits to concurrency 1, and until two requests for each in flight are more."""
LEAST_AGAIN = 2
"""Concurrencies that --quick visits twice at least: one alone tells next to nothing of the machine."""
MOST_ROUNDS = 3
"""Up and down: a machine that keeps changing is not waited for without end."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One of the times that a concurrency is measured."""

    concurrency: int
    before: int = 0
    """Visits to the same concurrency before this one."""

    def __str__(self) -> str:
        again = {0: "", 1: " again"}.get(self.before, f" again {self.before}")
        return f"concurrency {self.concurrency}{again}"

    @property
    def folder(self) -> str:
        """Of its run."""
        return str(self).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """What is asked at which concurrencies. Raises UsageError for fewer than LEAST_POINTS of them."""

    workload: Workload
    sampling: Sampling
    concurrencies: tuple[int, ...]
    """Rising, from 1."""
    quick: bool = False
    """Half as many requests, and only the lower half of the concurrencies twice."""

    def __post_init__(self) -> None:
        if len(self.concurrencies) < LEAST_POINTS:
            raise UsageError(
                f"a curve needs {LEAST_POINTS} points, and there would be {len(self.concurrencies)}: "
                "type --max-concurrency 4 or more"
            )

    def visits(self) -> tuple[Visit, ...]:
        """All, in the order of time."""
        return (*map(Visit, self.concurrencies), *(Visit(c, 1) for c in reversed(self._twice())))

    def _twice(self) -> tuple[int, ...]:
        levels = self.concurrencies
        return levels[: max(len(levels) // 2, LEAST_AGAIN)] if self.quick else levels

    def measure_plan(self, visit: Visit) -> MeasurePlan:
        """The requests of one visit, from the same first prompts, and all of one length.

        Two (--quick: one) for each in flight are shared by the visits of a concurrency, and there are as many
        as are in flight in each. A prompt's own max_tokens does not count here. Only the first visit warms up
        the server: the others follow at once.
        """
        wanted = max(LEAST_REQUESTS, visit.concurrency * 2) // (2 if self.quick else 1)
        shared = -(-wanted // (2 if visit.concurrency in self._twice() else 1))
        n_requests = max(shared, visit.concurrency)
        repeats = -(-n_requests // len(self.workload.prompts))
        asked = self.workload.prompts[: -(-n_requests // repeats)]
        prompts = tuple(replace(prompt, max_tokens=None) for prompt in asked)
        return MeasurePlan(
            replace(self.workload, prompts=prompts),
            self.sampling,
            ClosedLoop(visit.concurrency),
            repeats,
            warmup=int(visit == self.visits()[0]),
        )

    def steps_each(self, concurrency: int) -> int:
        """Decode steps that one request stands for, which others share: the unit of progress."""
        return max(round(self.sampling.max_tokens / concurrency), 1)

    def steps(self, *visits: Visit) -> int:
        """Of these, if every reply has its full length."""
        return sum(self.measure_plan(visit).requests * self.steps_each(visit.concurrency) for visit in visits)


def concurrencies(most: int, quick: bool = False) -> tuple[int, ...]:
    """Those measured up to `most`, which is always among them."""
    levels = QUICK_CONCURRENCIES if quick else CONCURRENCIES
    return (*(c for c in levels if c < most), most)


def another_round(concurrencies: Sequence[int], rounds: int) -> tuple[Visit, ...]:
    """Up and down once more, after so many rounds."""
    up = (Visit(c, 2 * rounds) for c in concurrencies)
    return (*up, *(Visit(c, 2 * rounds + 1) for c in reversed(concurrencies)))


class Watch:
    """Told how a calibration goes on. This one is deaf."""

    def begins(self, visit: Visit) -> None:
        """A concurrency is measured from now on."""

    def asked(self, visit: Visit, trace: RequestTrace) -> None:
        """One of its requests has ended."""

    def replans(self, visits: Sequence[Visit]) -> None:
        """All visits from now on, those done among them: the server decodes fewer at once, or the machine
        changed meanwhile."""


async def calibrate(
    endpoint: Endpoint,
    plan: CalibrationPlan,
    out: Path,
    *,
    moe: bool | None = None,
    kv_unified: bool | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    watch: Watch | None = None,
) -> Calibration:
    """Visit one concurrency after the other, and write calibration.json into `out` after each.

    Turns round early, and says so in `notes`, at the first concurrency that the server does not decode at
    once. Raises UsageError when the server speculates, and then leaves no calibration.json; EndpointError
    when all requests of a visit failed; for the rest what `measure_endpoint` raises: what was measured until
    then is in the file. `kv_unified`: whether a llama.cpp is known to run with --kv-unified.
    """
    heard = watch or Watch()
    kept = await _begin(endpoint, plan, moe, timeouts)
    if not kv_unified and kept.server.engine == "llama.cpp":
        kept = replace(kept, notes=(*kept.notes, APART_NOTE))
    visits, done, rounds = plan.visits(), 0, 1
    while done < len(visits):
        visit = visits[done]
        done += 1
        heard.begins(visit)
        run = await measure_endpoint(
            endpoint,
            plan.measure_plan(visit),
            out / visit.folder,
            timeouts=timeouts,
            on_trace=_telling(heard, visit),
        )
        traces = tuple(run.traces())
        _check_answered(traces, visit)
        try:
            refuse_speculation(run.meta.counters, *(trace.speculation for trace in traces))
        except UsageError:
            (out / FILE).unlink(missing_ok=True)
            raise
        kept = _with_visit(kept, run, traces, visit)
        save_calibration(kept, out / FILE)
        if _lacks_slots(run.meta, visit):
            fewer = (later for later in visits[done:] if later.concurrency < visit.concurrency)
            visits = (*visits[:done], *fewer)
            heard.replans(visits)
        elif done == len(visits) and rounds < MOST_ROUNDS and _is_unsteady(kept, plan):
            visits = (*visits, *another_round([point.concurrency for point in kept.points], rounds))
            rounds += 1
            heard.replans(visits)
    kept = replace(kept, complete=True)
    save_calibration(kept, out / FILE)
    return kept


def _is_unsteady(kept: Calibration, plan: CalibrationPlan) -> bool:
    return not plan.quick and bool(differing(kept.points))


async def _begin(
    endpoint: Endpoint, plan: CalibrationPlan, moe: bool | None, timeouts: Timeouts
) -> Calibration:
    """A calibration without points yet, of the server that answers there.

    Refuses one that ever drafted: its counters are of its whole life, in which no engine switches speculation
    on or off.
    """
    async with Pool() as pool:
        asker = await Asker.find(pool, endpoint, plan.sampling, timeouts)
        page = await asker.page()
        refuse_speculation(None if page is None else page.spec)
        return _begun(describe(asker, plan.measure_plan(plan.visits()[0])), plan, moe)


def _check_answered(traces: Sequence[RequestTrace], visit: Visit) -> None:
    errors = [trace.error for trace in traces if trace.error is not None]
    if errors and len(errors) == len(traces):
        raise EndpointError(
            f"all {len(errors)} requests at {visit} failed, the last with: {errors[-1].message}"
        )


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


def _telling(watch: Watch, visit: Visit) -> OnTrace:
    return lambda trace: watch.asked(visit, trace)


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


def _with_visit(kept: Calibration, run: Run, traces: Sequence[RequestTrace], visit: Visit) -> Calibration:
    reasons = doubts(run.meta)
    found = point(traces, visit.concurrency, reasons, _lag_s(run.meta))
    said = [*kept.notes, *notes_of(run.meta, traces, visit.concurrency)]
    if found is not None:
        kept = replace(kept, points=with_visit(kept.points, found))
    elif _lacks_slots(run.meta, visit):
        said.append(slots_note(run.meta, visit.concurrency))
    else:
        said.append(missing_note(visit.concurrency, reasons))
    return replace(kept, notes=tuple(dict.fromkeys(said)))


def _lacks_slots(meta: RunMeta, visit: Visit) -> bool:
    """Whether fewer were decoded at once than asked. On the way down there were slots enough before."""
    return not visit.before and 0 < (decoding_peak(meta) or 0) < visit.concurrency


def _lag_s(meta: RunMeta) -> float:
    """How late the client read at times (p99); 0 where it was not seen."""
    lag_ms = ((meta.self_check or {}).get("event_loop_lag_ms") or {}).get("p99")
    return (lag_ms or 0.0) / 1e3
