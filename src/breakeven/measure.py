"""Measure: a workload asked of a running endpoint, into a run on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter_ns
from typing import Literal

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.prometheus import between, read_counters
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS
from breakeven.client.identity import identify
from breakeven.client.load import ClosedLoop, OpenLoop, run_load
from breakeven.client.loop import running_loop_name
from breakeven.client.openai import DEFAULT_ASK_FOR, DEFAULT_TIMEOUTS, AskFor, ask, get_text, preflight
from breakeven.client.selfcheck import SelfCheck
from breakeven.client.timeouts import Timeouts
from breakeven.client.tokenise import keep_tokens
from breakeven.client.transport import Pool
from breakeven.errors import ConnectFailed, EndpointError, HttpError, UsageError
from breakeven.latency import request_latency
from breakeven.trace.journal import RunWriter
from breakeven.trace.provenance import load_average
from breakeven.trace.records import Kind, RequestTrace
from breakeven.trace.run import Run, RunMeta, Schedule, ServerInfo, load_run, new_meta
from breakeven.units import count
from breakeven.workload.prompts import Request, Sampling, Workload, requests

GIVE_UP_AFTER = 10
"""Failures in a row after which the server is taken for gone, …"""
GONE_AFTER = 3
"""… or so many in a row to which nothing answered at all."""

OnTrace = Callable[[RequestTrace], None]
End = Callable[[SelfCheck, SpecCounters | None], None]


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


class Failures:
    """Tells a server that is gone from one that fails now and then."""

    def __init__(self, limit: int = GIVE_UP_AFTER) -> None:
        self.limit = limit
        self._in_a_row = 0
        self._unanswered = 0

    def see(self, trace: RequestTrace) -> None:
        """Raises EndpointError once `limit` requests in a row failed, or GONE_AFTER met no server."""
        if trace.error is None:
            self._in_a_row = self._unanswered = 0
            return
        self._in_a_row += 1
        self._unanswered = self._unanswered + 1 if trace.error.kind == ConnectFailed.__name__ else 0
        if self._in_a_row >= self.limit or self._unanswered >= GONE_AFTER:
            raise EndpointError(
                f"{self._in_a_row} requests in a row failed, the last with: {trace.error.message}"
            )


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
        await asker.warm_up(plan.workload, plan.warmup)
        writer = RunWriter.create(out, meta, plan.workload.prompts)
        return await _record(asker, plan, writer, requests(plan.workload, plan.repeats), on_trace)


async def resume_run(
    folder: Path,
    connect: Callable[[RunMeta], Endpoint],
    *,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ask_for: AskFor = DEFAULT_ASK_FOR,
    on_trace: OnTrace = lambda trace: None,
) -> Run:
    """Ask what an interrupted run still lacks, failed requests among it, and finish it.

    `connect` gives the endpoint for the run's meta, with the API key that no run keeps. The last requests may
    be too few to keep the concurrency, as they are at the end of any run. Raises UsageError if nothing lacks.
    """
    begun = load_run(folder)
    plan = plan_of(begun)
    refuse_whole(begun, plan)
    writer, done = RunWriter.resume(folder)
    missing = [request for request in requests(plan.workload, plan.repeats) if request.id not in done]
    if not missing:
        writer.finish(replace(writer.meta, status="complete", elapsed_s=writer.last_ns / 1e9))
        return load_run(folder)
    async with Pool() as pool:
        try:
            asker = await Asker.find(pool, connect(begun.meta), plan.sampling, timeouts, ask_for)
            await asker.warm_up(plan.workload, plan.warmup)
        except BaseException:
            status = "interrupted" if begun.meta.status == "running" else begun.meta.status
            writer.pause(replace(begun.meta, status=status))
            raise
        left = replace(plan, schedule=_at_most(plan.schedule, len(missing)))
        return await _record(asker, left, writer, iter(missing), on_trace)


def refuse_whole(run: Run, plan: MeasurePlan) -> None:
    """Raises UsageError for a run that came to its end with every request answered."""
    answered = sum(trace.error is None for trace in run.traces())
    if run.meta.status in ("complete", "void") and answered >= plan.requests:
        raise UsageError(f"{run.path} lacks nothing: type  breakeven show {run.path}")


@dataclass(frozen=True, slots=True)
class Asker:
    """How one endpoint is asked."""

    pool: Pool
    endpoint: Endpoint
    server: ServerInfo
    sampling: Sampling
    timeouts: Timeouts
    ask_for: AskFor

    @classmethod
    async def find(
        cls,
        pool: Pool,
        endpoint: Endpoint,
        sampling: Sampling,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        ask_for: AskFor = DEFAULT_ASK_FOR,
    ) -> Asker:
        """Find the endpoint answering, its model, and what it can tell. Raises what `preflight` does."""
        found = await preflight(pool, endpoint)
        server = await identify(pool, found)
        telling = replace(ask_for, usage_per_chunk=server.engine == "vllm")
        return cls(pool, found, server, sampling, timeouts, telling)

    async def ask(
        self, request: Request, clock_zero_ns: int, scheduled_ns: int | None = None
    ) -> RequestTrace:
        return await ask(
            self.pool,
            self.endpoint,
            request,
            self.sampling,
            self.timeouts,
            clock_zero_ns,
            scheduled_ns,
            self.ask_for,
        )

    async def page(self, warn: Callable[[str], None] = lambda why: None) -> SpecCounters | None:
        """The server's speculation counters as they stand; None where it has none on /metrics.

        They are not waited for long: a run without them is only poorer. `warn` is told why they are unknown
        where the page exists, or may exist, and could not be read.
        """
        try:
            return read_counters(await get_text(self.pool, self.endpoint, "/metrics", QUICK_TIMEOUTS))
        except HttpError:
            return None
        except EndpointError as error:
            warn(f"the server's counters of speculation are unknown: {error}")
            return None

    async def warm_up(self, workload: Workload, n: int) -> None:
        """`n` requests that are not kept. Raises EndpointError where one fails: so would all that follow."""
        for prompt in islice(cycle(workload.prompts), n):
            trace = await self.ask(Request(prompt), perf_counter_ns())
            if trace.error is not None:
                raise EndpointError(f"the first request failed: {trace.error.message}")
            if not _has_tokens(trace):
                raise EndpointError(
                    f"{self.endpoint.request_url} answered without a single token (finish reason "
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

    def keep(trace: RequestTrace) -> None:
        writer.append(trace)
        on_trace(trace)
        failures.see(trace)

    def warn(why: str) -> None:
        writer.meta = replace(writer.meta, warnings=tuple(dict.fromkeys((*writer.meta.warnings, why))))

    earlier_ns = writer.last_ns
    zero_ns = perf_counter_ns() - earlier_ns
    with closing(writer, lambda: perf_counter_ns() - zero_ns) as end:
        before = await asker.page(warn)
        zero_ns = perf_counter_ns() - earlier_ns
        report = await run_load(
            asked, lambda request, due_ns: asker.ask(request, zero_ns, due_ns), plan.schedule, keep, zero_ns
        )
        counted = None if before is None else between(before, await asker.page(warn))
        end(report.self_check, None if earlier_ns else counted)
    run = load_run(writer.path)
    await keep_tokens(asker.pool, asker.endpoint, run)
    return run


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

    def end(check: SelfCheck, counted: SpecCounters | None) -> None:
        reasons = (*(writer.meta.self_check or {}).get("reasons", ()), *check.reasons)
        both = replace(check, ok=not reasons, reasons=tuple(dict.fromkeys(reasons)))
        status: Literal["complete", "void"] = "complete" if both.ok else "void"
        ended.append(replace(writer.meta, status=status, self_check=asdict(both), counters=counted))

    try:
        yield end
    finally:
        close = writer.finish if ended else writer.pause
        meta = ended[0] if ended else replace(writer.meta, status="interrupted")
        client = replace(meta.client, load_average_end=load_average())
        close(replace(meta, elapsed_s=elapsed_ns() / 1e9, client=client))
