"""The conductor: asks both sides in turn, looks after each repeat, and stops when the verdict is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter_ns

from breakeven.acceptance.combine import complete
from breakeven.client.asker import Asker
from breakeven.client.endpoint import Endpoint
from breakeven.client.failures import Failures
from breakeven.client.load import ClosedLoop, LoadReport, run_load
from breakeven.client.openai import DEFAULT_TIMEOUTS
from breakeven.client.pool import Pool
from breakeven.client.selfcheck import SelfCheck
from breakeven.client.timeouts import Timeouts
from breakeven.client.tokenise import keep_tokens
from breakeven.compare.comparison import compare_traces
from breakeven.compare.sequential import StoppingRule
from breakeven.errors import BreakevenError, EndpointError, ServerError
from breakeven.latency import request_latency
from breakeven.measure import MeasurePlan, closing, describe, keep_warnings, send_warmup
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import RunMeta, load_run
from breakeven.trial.left_out import kept
from breakeven.trial.plan import SIDES, Ask, TrialPlan, loads
from breakeven.trial.result import TrialResult
from breakeven.trial.store import SideRecord, TrialRecord, load_trial, save_trial
from breakeven.trial.windows import Windows
from breakeven.units import count, duration

Watch = Callable[[str], None]
"""Told after each request which side answered what."""


@dataclass(frozen=True, slots=True)
class LiveSide:
    """One side, up and answering."""

    description: str
    endpoint: Endpoint
    reload_s: float | None = None
    """From the start of its process to the first real completion; None if it was running already."""
    warnings: tuple[str, ...] = ()
    """What would make its figures mean something else, such as a drafter that learns across requests."""
    failure: Callable[[], str | None] = lambda: None
    """Why its process ended; None while it runs, or where nobody knows."""


@dataclass(slots=True)
class _Side:
    """A side while the trial runs."""

    asker: Asker
    writer: RunWriter
    failure: Callable[[], str | None]
    failures: Failures = field(default_factory=Failures)
    traces: list[RequestTrace] = field(default_factory=list)
    windows: Windows = field(init=False)

    def __post_init__(self) -> None:
        self.windows = Windows(self.asker)


async def conduct(
    plan: TrialPlan,
    sides: Mapping[str, LiveSide],
    out: Path,
    watch: Watch,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> TrialResult:
    """Run the trial and write it to `out`: a run folder for each side, and trial.json.

    Raises EndpointError or ServerError when a side is gone: before the first kept request with nothing
    written. From then on, also on cancellation, what was measured is saved and can be shown and compared.
    """
    async with Pool() as pool:
        askers = {name: await _warm(pool, name, sides[name], plan, timeouts) for name in SIDES}
        zero_ns = perf_counter_ns()
        with ExitStack() as stack:
            asked, ends = {}, {}
            for name, asker in askers.items():
                meta = describe(asker, _measured(plan), "trial-side")
                writer = RunWriter.create(out / name, meta, plan.workload.prompts)
                ends[name] = stack.enter_context(closing(writer, lambda: perf_counter_ns() - zero_ns))
                asked[name] = _Side(asker, writer, sides[name].failure)
            record = _record(plan, sides, asked["baseline"].writer.meta)
            trial = _Trial(plan, asked, watch, zero_ns)
            with _saving(out, record, trial):
                await trial.run()
            for name, end in ends.items():
                keep_warnings(asked[name].writer, asked[name].windows.meter)
                end(trial.self_check(), asked[name].windows.meter)
        for name, asker in askers.items():
            await keep_tokens(pool, asker.endpoint, load_run(out / name))
    return load_trial(out)


async def _warm(pool: Pool, name: str, live: LiveSide, plan: TrialPlan, timeouts: Timeouts) -> Asker:
    """Find the side answering, and warm it up. Raises EndpointError, which names the side."""
    try:
        asker = await Asker.find(pool, live.endpoint, plan.sampling, timeouts)
        await send_warmup(asker, plan.workload, plan.warmup)
    except BreakevenError as error:
        error.add_note(f"that was the {name}, {live.endpoint.base_url}")
        raise
    return asker


@contextmanager
def _saving(out: Path, record: TrialRecord, trial: _Trial) -> Iterator[None]:
    """Write trial.json when the trial begins, and when it ends in whatever way. Raises StorageError."""
    save_trial(out, record)
    finished = False
    try:
        yield
        finished = True
    finally:
        save_trial(
            out,
            replace(
                record,
                stop_reason=trial.stop_reason,
                left_out=trial.left_out,
                elapsed_s=trial.elapsed_s(),
                finished=finished,
            ),
        )


def _measured(plan: TrialPlan) -> MeasurePlan:
    """What each side is asked."""
    repeats = plan.repeats or plan.cap
    return MeasurePlan(plan.workload, plan.sampling, ClosedLoop(plan.concurrency), repeats, plan.warmup)


def _record(plan: TrialPlan, sides: Mapping[str, LiveSide], baseline: RunMeta) -> TrialRecord:
    rule = _rule(plan)
    return TrialRecord(
        model=baseline.model or "",
        workload=plan.workload.name,
        started=baseline.created,
        floor=plan.floor,
        alpha=rule.alpha_per_look if rule else 1 - plan.confidence,
        sides={
            name: SideRecord(live.description, live.reload_s, live.warnings) for name, live in sides.items()
        },
    )


def _rule(plan: TrialPlan) -> StoppingRule | None:
    return StoppingRule(plan.cap, 1 - plan.confidence) if plan.repeats is None else None


class _Trial:
    """The measured part: repeat after repeat, until there is a reason to stop."""

    def __init__(self, plan: TrialPlan, sides: Mapping[str, _Side], watch: Watch, zero_ns: int) -> None:
        self.plan = plan
        self.sides = sides
        self.watch = watch
        self.zero_ns = zero_ns
        self.rule = _rule(plan)
        self.left_out: dict[int, tuple[str, ...]] = {}
        """Repeats in which the client fell behind, and why: measured and saved, but not compared."""
        self.stop_reason = "interrupted"
        self._checks: list[SelfCheck] = []

    def elapsed_s(self) -> float:
        return (perf_counter_ns() - self.zero_ns) / 1e9

    async def run(self) -> None:
        """Ask repeat after repeat, and leave the reason to stop in `stop_reason`.

        Raises EndpointError or ServerError when a side is gone.
        """
        try:
            self.stop_reason = await self._repeats()
        except BreakevenError as error:
            self.stop_reason = f"stopped early: {error}"
            raise

    async def _repeats(self) -> str:
        """Ask repeat after repeat; the reason to stop."""
        longest_s = 0.0
        most = self.plan.repeats or self.plan.cap
        for repeat in range(most):
            began_s = self.elapsed_s()
            await self._repeat(repeat)
            longest_s = max(longest_s, self.elapsed_s() - began_s)
            reason = self._reason_to_stop(repeat)
            if reason is not None:
                return reason
            limit_s = self.plan.time_limit_s
            if limit_s is not None and repeat + 1 < most and self.elapsed_s() + longest_s > limit_s:
                return f"stopped after {count(repeat + 1, 'repeat')}: another would pass {duration(limit_s)}"
        return f"all {count(most, 'repeat')} done"

    def self_check(self) -> SelfCheck:
        """Of the repeats that are compared, the one whose event loop lagged most; of all, if none is."""
        fine = [check for check in self._checks if check.ok] or self._checks
        return max(fine, key=lambda check: check.event_loop_lag_ms["p99"] or 0.0)

    async def _repeat(self, repeat: int) -> None:
        reasons: list[str] = []
        for load in loads(self.plan, repeat):
            report = await self._ask(load)
            self._checks.append(report.self_check)
            reasons += report.self_check.reasons
        if reasons:
            self.left_out[repeat] = tuple(dict.fromkeys(reasons))

    async def _ask(self, load: tuple[Ask, ...]) -> LoadReport:
        """One load. Under concurrency it is of one side, and a window of its counters."""
        loop = ClosedLoop(self.plan.concurrency)
        if self.plan.concurrency == 1:
            return await run_load(load, self._send, loop, _ignore, self.zero_ns)
        side = self.sides[load[0].side]
        before, asked = await side.windows.open(), len(side.traces)
        report = await run_load(load, self._send, loop, _ignore, self.zero_ns)
        await side.windows.close(before, side.traces[asked:])
        return report

    async def _send(self, ask: Ask, due_ns: int | None) -> RequestTrace:
        """Ask one side and keep its trace; asked one at a time, with the counts that only /metrics gives."""
        side = self.sides[ask.side]
        alone = self.plan.concurrency == 1
        before = await side.windows.open() if alone else None
        trace = await side.asker.ask(ask.request, self.zero_ns, due_ns)
        if alone:
            counted = await side.windows.close(before, [trace])
            n_tokens = request_latency(trace).output_tokens
            trace = replace(trace, speculation=complete(trace.speculation, counted, n_tokens))
        side.writer.append(trace)
        side.traces.append(trace)
        self.watch(f"{ask.side} {ask.request.id}")
        self._look_after(ask.side, trace)
        return trace

    def _look_after(self, name: str, trace: RequestTrace) -> None:
        """Raises ServerError or EndpointError, which name the side, when it is gone."""
        side = self.sides[name]
        ended = side.failure() if trace.error else None
        if ended is not None:
            raise ServerError(f"the {name} is gone: {ended}")
        try:
            side.failures.see(trace)
        except EndpointError as error:
            raise EndpointError(f"the {name} is gone: {error}") from error

    def _reason_to_stop(self, repeat: int) -> str | None:
        """What the stopping rule says after this repeat, if it looks at all."""
        done = repeat + 1 - len(self.left_out)
        if self.rule is None or repeat in self.left_out or done not in self.rule.looks:
            return None
        baseline, candidate = (kept(self.sides[name].traces, self.left_out) for name in SIDES)
        comparison = compare_traces(
            baseline,
            candidate,
            temperature=self.plan.sampling.temperature,
            floor=self.plan.floor,
            alpha=self.rule.alpha_per_look,
        )
        decision = self.rule.decide(comparison, done)
        return decision.reason if decision.stop else None


def _ignore(trace: RequestTrace) -> None:
    """`_send` has kept it already, where its side is known."""
