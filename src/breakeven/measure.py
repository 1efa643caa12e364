"""Measure: a workload asked of a running endpoint, into a run on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter_ns
from typing import Literal

from breakeven.acceptance.meter import Asked, Meter
from breakeven.client.asker import Asker
from breakeven.client.endpoint import Endpoint
from breakeven.client.failures import GIVE_UP_AFTER, Failures
from breakeven.client.load import ClosedLoop, OpenLoop, run_load
from breakeven.client.loop import running_loop_name
from breakeven.client.openai import DEFAULT_ASK_FOR, DEFAULT_TIMEOUTS, AskFor
from breakeven.client.selfcheck import SelfCheck
from breakeven.client.timeouts import Timeouts
from breakeven.client.tokenise import keep_tokens
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError, UsageError
from breakeven.latency import request_latency
from breakeven.latency.asked import asked_of
from breakeven.trace.journal import RunWriter
from breakeven.trace.provenance import load_average
from breakeven.trace.records import Kind, RequestTrace
from breakeven.trace.run import Run, RunMeta, Schedule, load_run, new_meta
from breakeven.units import count
from breakeven.workload.prompts import Request, Sampling, Workload, requests

OnTrace = Callable[[RequestTrace], None]
End = Callable[[SelfCheck, Meter], None]


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """What is asked, how it is sent, and how often."""

    workload: Workload
    sampling: Sampling
    schedule: ClosedLoop | OpenLoop
    repeats: int = 1
    warmup: int = 1
    """Requests asked first, one at a time, and not kept."""

    def __post_init__(self) -> None:
        """Raises UsageError where there are too few requests to keep the concurrency."""
        asked = getattr(self.schedule, "concurrency", 0)
        if asked > self.requests:
            raise UsageError(
                f"{count(self.requests, 'request')} cannot keep {asked} in flight: raise --repeats, "
                f"add prompts, or type --concurrency {self.requests}"
            )

    @property
    def requests(self) -> int:
        """How many are asked and kept."""
        return len(self.workload.prompts) * self.repeats


async def measure_endpoint(
    endpoint: Endpoint,
    plan: MeasurePlan,
    out: Path,
    *,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ask_for: AskFor = DEFAULT_ASK_FOR,
    on_trace: OnTrace = lambda trace: None,
) -> Run:
    """Ask every prompt `plan.repeats` times and write the run to `out`.

    Raises what `preflight` and the first warm-up request raise before anything is written; EndpointError when
    the server is gone; StorageError when the disk is full. From the first kept request on, whatever ends the
    run leaves a folder that can be shown, compared and resumed.
    """
    async with Pool() as pool:
        asker = await Asker.find(pool, endpoint, plan.sampling, timeouts, ask_for)
        meta = describe(asker, plan)
        await send_warmup(asker, plan.workload, plan.warmup)
        writer = RunWriter.create(out, meta, plan.workload.prompts)
        return await _record(asker, plan, writer, requests(plan.workload, plan.repeats), on_trace)


async def resume_run(
    folder: Path,
    connect: Callable[[RunMeta], Endpoint],
    *,
    schedule: ClosedLoop | OpenLoop | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ask_for: AskFor = DEFAULT_ASK_FOR,
    on_trace: OnTrace = lambda trace: None,
) -> Run:
    """Ask what an interrupted run still lacks, failed requests among it, and finish it.

    `connect` gives the endpoint for the run's meta, with the API key that no run keeps. The last requests may
    be too few to keep the concurrency, as they are at the end of any run. A `schedule` takes the place of
    the one that it was begun with, for runs whose times nobody reads. Raises UsageError if nothing lacks.
    """
    begun = load_run(folder)
    plan = plan_of(begun)
    refuse_whole(begun, plan)
    writer, done = RunWriter.resume(folder)
    missing = [request for request in requests(plan.workload, plan.repeats) if request.id not in done]
    if not missing:
        writer.finish(replace(writer.meta, status="complete", elapsed_s=writer.last_ns / 1e9))
        return load_run(folder)
    if schedule is not None:
        writer.meta = replace(writer.meta, schedule=_schedule(schedule))
    async with Pool() as pool:
        try:
            asker = await Asker.find(pool, connect(begun.meta), plan.sampling, timeouts, ask_for)
            await send_warmup(asker, plan.workload, plan.warmup)
        except BaseException:
            status = "interrupted" if begun.meta.status == "running" else begun.meta.status
            writer.pause(replace(begun.meta, status=status))
            raise
        left = replace(plan, schedule=_at_most(schedule or plan.schedule, len(missing)))
        return await _record(asker, left, writer, iter(missing), on_trace)


def refuse_whole(run: Run, plan: MeasurePlan) -> None:
    """Raises UsageError for a run that came to its end with every request answered."""
    answered = sum(trace.error is None for trace in run.traces())
    if run.meta.status in ("complete", "void") and answered >= plan.requests:
        raise UsageError(f"{run.path} lacks nothing: type  breakeven show {run.path}")


async def send_warmup(asker: Asker, workload: Workload, n: int) -> None:
    """`n` requests that are not kept. Raises EndpointError where one fails: so would all that follow."""
    for prompt in islice(cycle(workload.prompts), n):
        trace = await asker.ask(Request(prompt), perf_counter_ns())
        if trace.error is not None:
            raise EndpointError(f"the first request failed: {trace.error.message}")
        if not _has_tokens(trace):
            raise EndpointError(
                f"{asker.endpoint.request_url} answered without a single token (finish reason "
                f"{trace.finish_reason!r}): raise --max-tokens, or try another prompt with --prompts"
            )


def _has_tokens(trace: RequestTrace) -> bool:
    """Whether any were seen, or counted unseen; the chunk that closes a reply need not hold one."""
    return any(event.kind is not Kind.END for event in trace.events) or bool(
        request_latency(trace).output_tokens
    )


def describe(asker: Asker, plan: MeasurePlan, kind: Literal["measure", "trial-side"] = "measure") -> RunMeta:
    """The meta of a run that starts now: who is asked what, from where."""
    return new_meta(
        kind=kind,
        url=asker.endpoint.base_url,
        api=asker.endpoint.api,
        model=asker.endpoint.model,
        server=asker.server,
        schedule=_schedule(plan.schedule),
        sampling=plan.sampling,
        workload=plan.workload,
        repeats=plan.repeats,
        warmup_requests=plan.warmup,
        event_loop=running_loop_name(),
    )


def plan_of(run: Run) -> MeasurePlan:
    """The plan that a run on disk was begun with."""
    meta, kept = run.meta, run.meta.schedule
    schedule: ClosedLoop | OpenLoop = ClosedLoop(kept.concurrency or 1)
    if kept.mode == "open":
        schedule = OpenLoop(kept.rate_per_s or 0.0, kept.poisson, kept.seed or 0)
    workload = Workload(meta.workload.name, run.prompts())
    return MeasurePlan(workload, meta.sampling, schedule, meta.repeats, meta.warmup_requests)


def _schedule(schedule: ClosedLoop | OpenLoop) -> Schedule:
    if isinstance(schedule, ClosedLoop):
        return Schedule("closed", concurrency=schedule.concurrency)
    return Schedule("open", rate_per_s=schedule.rate_per_s, poisson=schedule.poisson, seed=schedule.seed)


async def _record(
    asker: Asker, plan: MeasurePlan, writer: RunWriter, asked: Iterator[Request], on_trace: OnTrace
) -> Run:
    """Send the load, keep each trace as it ends, and close the run whatever happens."""
    failures = Failures(max(GIVE_UP_AFTER, getattr(plan.schedule, "concurrency", 0)))
    asked_for = Asked()

    def keep(trace: RequestTrace) -> None:
        nonlocal asked_for
        asked_for += asked_of([trace])
        writer.append(trace)
        on_trace(trace)
        failures.see(trace)

    def warn(why: str) -> None:
        writer.meta = replace(writer.meta, warnings=_once(*writer.meta.warnings, why))

    earlier_ns = writer.last_ns
    zero_ns = perf_counter_ns() - earlier_ns
    with closing(writer, lambda: perf_counter_ns() - zero_ns) as end:
        before = await asker.page(warn)
        zero_ns = perf_counter_ns() - earlier_ns
        report = await run_load(
            asked, lambda request, due_ns: asker.ask(request, zero_ns, due_ns), plan.schedule, keep, zero_ns
        )
        after = None if before is None else await asker.page(warn)
        meter = Meter().add(before, after, asked_for)
        keep_warnings(writer, meter)
        end(report.self_check, Meter() if earlier_ns else meter)
    run = load_run(writer.path)
    await keep_tokens(asker.pool, asker.endpoint, run)
    return run


def keep_warnings(writer: RunWriter, meter: Meter) -> None:
    """Keep in the meta what qualifies the meter's counts."""
    meta = writer.meta
    writer.meta = replace(
        meta, warnings=_once(*meta.warnings, *meter.warnings), notes=_once(*meta.notes, *meter.notes)
    )


def _once(*sentences: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))


def _at_most(schedule: ClosedLoop | OpenLoop, n_requests: int) -> ClosedLoop | OpenLoop:
    """The schedule, at a concurrency that so many requests can keep."""
    if isinstance(schedule, OpenLoop):
        return schedule
    return ClosedLoop(max(min(schedule.concurrency, n_requests), 1))


@contextmanager
def closing(writer: RunWriter, elapsed_ns: Callable[[], int]) -> Iterator[End]:
    """Close the run whatever happens. It is complete, or void, once `end` was called with its self-check;
    else it was interrupted, and can be resumed. A resumed run is void if it was so before.
    """
    ended: list[RunMeta] = []

    def end(check: SelfCheck, meter: Meter) -> None:
        reasons = (*(writer.meta.self_check or {}).get("reasons", ()), *check.reasons)
        both = replace(check, ok=not reasons, reasons=tuple(dict.fromkeys(reasons)))
        status: Literal["complete", "void"] = "complete" if both.ok else "void"
        meta = replace(writer.meta, counters=meter.counters, load=meter.load)
        ended.append(replace(meta, status=status, self_check=asdict(both)))

    try:
        yield end
    finally:
        close = writer.finish if ended else writer.pause
        meta = ended[0] if ended else replace(writer.meta, status="interrupted")
        client = replace(meta.client, load_average_end=load_average())
        close(replace(meta, elapsed_s=elapsed_ns() / 1e9, client=client))
