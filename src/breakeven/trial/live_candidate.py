"""LiveTrial: one candidate in a service's place, and the baseline again afterwards, into a trial folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from breakeven.client.asker import Asker
from breakeven.client.failures import GIVE_UP_AFTER, Failures
from breakeven.client.tokenise import keep_tokens
from breakeven.client.transport import Pool
from breakeven.compare.comparison import compare_traces
from breakeven.compare.sequential import MIN_REPEATS, StoppingRule
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import BreakevenError, StorageError, UsageError
from breakeven.measure import End
from breakeven.servers.operations import Operation
from breakeven.trace.journal import RunWriter
from breakeven.trace.run import Run, load_run
from breakeven.trial.left_out import kept, left_out_of
from breakeven.trial.live_change import LiveChange, changing, operations_of, told
from breakeven.trial.live_guard import candidate_guard, while_alive
from breakeven.trial.live_order import whole_repeats
from breakeven.trial.live_plan import LivePlan
from breakeven.trial.live_service import Service
from breakeven.trial.live_side import RELOAD_S, MeasuredSide, measuring, unanswered
from breakeven.trial.live_watch import Watch
from breakeven.trial.plan import SIDES
from breakeven.trial.result import TrialResult
from breakeven.trial.start_facts import StartFacts
from breakeven.trial.store import SideRecord, TrialRecord, is_trial, load_trial, save_trial
from breakeven.units import count, duration

BASELINE, CANDIDATE = SIDES
NEVER_READY, CUT_OFF = "was never ready", "was cut off before it was noted"
NO_RETURN = (
    "the baseline was not measured again after the candidate: a drift of the machine, or of the load that "
    "others put on it, looks like a difference"
)
BOTH = "the baseline speculates too ({runs}): the figures compare two ways to speculate, not one with none"
LEARNS = (
    "{method} learns across requests: each prompt was asked once, and others for warm-up; what it learns "
    "of your own traffic in the long run is not in these figures"
)


class LiveTrial:
    """Made for one candidate, and run once."""

    def __init__(
        self,
        service: Service,
        plan: LivePlan,
        candidate: SpeculationConfig,
        out: Path,
        watch: Watch,
        found: Run,
    ) -> None:
        """`found` is the baseline's run, in `out`. Raises UsageError where the candidate cannot be tried."""
        if is_trial(out):
            raise UsageError(f"{out} holds a trial already: name another --out")
        self.service = service
        self.plan = plan
        self.candidate = candidate
        self.out = out
        self.watch = watch
        self.found = found.meta
        self.facts = StartFacts.kept(found.meta.extra)
        self.version = found.meta.server.version or service.version
        self.argv = service.candidate_argv(candidate, self.version)
        self.fresh = plan.is_fresh(service.dialect, candidate)
        self.before = list(found.traces())
        asked = whole_repeats(self.before, len(plan.trial.workload.prompts))
        self.repeats = plan.repeats(service.dialect, candidate, asked)
        self.rule = _rule(plan, asked, self.fresh)
        self.asked: list[int] = []
        """Repeats of the candidate, in their order."""
        self.left_out = left_out_of(found.meta)
        self.stop_reason: str | None = None
        self.failed: str | None = None
        self.reloads: dict[str, float | None] = {BASELINE: found.meta.extra.get(RELOAD_S), CANDIDATE: None}
        self.differences: dict[str, tuple[str, ...]] = {BASELINE: (), CANDIDATE: ()}
        self.is_asked_again = False
        """The baseline, after the candidate."""
        self.is_finished = False
        self._began_s = perf_counter()

    async def run(self) -> TrialResult:
        """The whole trial. Raises as `try_candidate` says."""
        with ExitStack() as stack:
            kept_on = await self._in_its_place(stack)
            if self.plan.order != "AB" and self.failed is None:
                await self._baseline_again()
            self.is_finished = True
        await self._keep_tokens()
        if self.plan.order != "AB" and self._is_to_be_kept():
            async with changing(self.service, self.plan, self.watch) as change:
                await change.keep(self._for_good)
            kept_on = change.kept
        if kept_on:
            self._tell_kept(kept_on)
        return load_trial(self.out)

    async def _in_its_place(self, stack: ExitStack) -> tuple[Operation, ...]:
        """The candidate's part, with the service put back at its end. Returns what was kept instead, if it
        was; what the stack holds by then is written after that."""
        operations = operations_of(self.service, self.argv, self.candidate, self.version)
        async with changing(self.service, self.plan, self.watch) as change:
            side, end = stack.enter_context(self._candidate_run())
            stack.enter_context(self._saving())
            stack.callback(self._note_reload, change)
            try:
                await self._measure(change, side, operations)
            except StorageError:
                raise
            except BreakevenError as error:
                self.failed, self.stop_reason = self._without_key(str(error)), "the candidate failed"
                told(self.watch.said, f"the candidate failed, and the service is put back: {self.failed}")
            else:
                side.finish(end)
            if self.plan.order == "AB" and self._is_to_be_kept():
                await change.keep(self._for_good)
        return change.kept

    def _without_key(self, text: str) -> str:
        """What a server logs of its own command line may have it."""
        key = self.service.endpoint.api_key
        return text if key is None else key.redact(text)

    def _for_good(self) -> tuple[Operation, ...]:
        return operations_of(self.service, self.argv, self.candidate, self.version, for_good=True)

    async def _measure(self, change: LiveChange, side: MeasuredSide, operations: Sequence[Operation]) -> None:
        """Each start of the candidate. Raises BreakevenError where it fails, and StorageError."""
        prompts, concurrency = self.plan.trial.workload.prompts, self.plan.trial.concurrency
        most = sum(map(len, self.repeats.candidate))
        self.watch.begins(CANDIDATE, 2, len(self.plan.order), most * len(prompts))
        probes = () if self.fresh else prompts
        for number, repeats in enumerate(self.repeats.candidate):
            if number:
                await change.again(probes, concurrency)
            else:
                self.reloads[CANDIDATE] = (await change.start(operations, probes, concurrency)).seconds
                self._save(over=False)
                self.differences[CANDIDATE] = self.facts.against(await StartFacts.of(self.service))
            async with Pool() as pool:
                asker = await self._asker(pool)
                await while_alive(self.service, CANDIDATE, self._ask(side, asker, repeats))
            if self.stop_reason is not None:
                return
        self.stop_reason = f"all {count(most, 'repeat')} done"

    async def _ask(self, side: MeasuredSide, asker: Asker, repeats: Sequence[int]) -> None:
        """Until the last repeat, or a reason to stop."""
        await side.begin(asker, self.fresh)
        for number in repeats:
            await side.repeat(number)
            self.asked.append(number)
            self.left_out |= side.left_out
            self.stop_reason = self._reason_to_stop(side)
            if self.stop_reason is not None:
                return

    def _reason_to_stop(self, side: MeasuredSide) -> str | None:
        """Only where as many repeats pair up with the baseline before as with the one after it."""
        ahead = sum(map(len, self.repeats.candidate)) - len(self.asked)
        if not ahead or not self.repeats.is_balanced(self.asked):
            return None
        limit_s = self.plan.trial.time_limit_s
        if limit_s is not None and not side.has_time(limit_s / 2, 1 if self.plan.order == "AB" else 2):
            return f"stopped after {count(len(self.asked), 'repeat')}: more would pass {duration(limit_s)}"
        return self._decided(side)

    def _decided(self, side: MeasuredSide) -> str | None:
        """What the stopping rule says of the pairs with the baseline before, if it looks at all."""
        paired = [n for n in self.asked if n in self.repeats.before and n not in self.left_out]
        if self.rule is None or len(paired) not in self.rule.looks:
            return None
        comparison = compare_traces(
            kept(self.before, self.left_out),
            kept(side.traces, self.left_out),
            temperature=self.plan.trial.sampling.temperature,
            floor=self.plan.trial.floor,
            alpha=self.rule.alpha_per_look,
        )
        decision = self.rule.decide(comparison, len(paired))
        against = "" if self.plan.order == "AB" else ", against the baseline before the candidate"
        return f"{decision.reason}{against}" if decision.stop else None

    async def _baseline_again(self) -> None:
        """Into the same run as before. Raises EndpointError where the service is not well, StorageError."""
        repeats = self.repeats.after(self.asked)
        n_parts, prompts = len(self.plan.order), self.plan.trial.workload.prompts
        self.watch.begins(f"{BASELINE}, once it is back", n_parts, n_parts, len(repeats) * len(prompts))
        facts = await StartFacts.of(self.service)
        see = Failures(max(GIVE_UP_AFTER, self.plan.trial.concurrency)).see
        writer, _ = RunWriter.resume(self.out / BASELINE)
        with measuring(BASELINE, self.plan.trial, writer, self.watch, see) as (side, end):
            async with Pool() as pool:
                await side.begin(await self._asker(pool), self.fresh)
                await while_alive(self.service, BASELINE, side.ask(repeats))
            self.left_out |= side.left_out
            side.finish(end)
        self.is_asked_again = True
        self.differences[BASELINE] = self.facts.before(facts)

    async def _asker(self, pool: Pool) -> Asker:
        service, sampling = self.service, self.plan.trial.sampling
        return await Asker.find(pool, service.endpoint, sampling, service.timeouts, service.ask_for)

    @contextmanager
    def _candidate_run(self) -> Iterator[tuple[MeasuredSide, End]]:
        """Written before anything is touched: whatever happens then, the trial can be shown."""
        meta = unanswered(self.found, self.plan.trial.workload)
        writer = RunWriter.create(self.out / CANDIDATE, meta, self.plan.trial.workload.prompts)
        see = candidate_guard(self.plan.bounds, self.before)
        with measuring(CANDIDATE, self.plan.trial, writer, self.watch, see) as made:
            yield made

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """trial.json when the trial begins, and when it ends in whatever way. Raises StorageError."""
        self._save(over=False)
        try:
            yield
        finally:
            self._save()

    def _save(self, over: bool = True) -> None:
        """What is saved before it is over is what there is of a trial that is killed."""
        trial = self.plan.trial
        save_trial(
            self.out,
            TrialRecord(
                model=self.found.model or "",
                workload=trial.workload.name,
                started=self.found.created,
                floor=trial.floor,
                alpha=self.rule.alpha_per_look if self.rule else 1 - trial.confidence,
                sides={name: self._side_record(name, over) for name in SIDES},
                stop_reason=self.stop_reason or ("interrupted" if over else "cut off"),
                left_out=self.left_out,
                elapsed_s=perf_counter() - self._began_s if over else None,
                finished=self.is_finished,
                failed=self.failed,
            ),
        )

    def _side_record(self, name: str, over: bool) -> SideRecord:
        title = self.service.dialect.title
        if name == CANDIDATE:
            learned = (LEARNS.format(method=self.candidate.method),) if self.fresh else ()
            warnings = (*learned, *self.differences[name])
            title = f"{title}, {self.candidate.describe()}"
            absent = NEVER_READY if over else CUT_OFF
            return SideRecord(title, self.reloads[name], warnings, reload_absent=absent)
        speculation = self.service.speculation
        runs = speculation.describe() if speculation else "no speculation"
        alone = (NO_RETURN,) if self.asked and not self.is_asked_again else ()
        both = (BOTH.format(runs=runs),) if speculation else ()
        warnings = (*both, *alone, *self.differences[name])
        return SideRecord(f"{title} as found, {runs}", self.reloads[name], warnings)

    def _note_reload(self, change: LiveChange) -> None:
        if change.baseline is not None:
            self.reloads[BASELINE] = change.baseline.seconds

    def _is_to_be_kept(self) -> bool:
        if self.plan.keep_if is None or self.failed is not None:
            return False
        self._save()
        return load_trial(self.out).verdict.outcome == self.plan.keep_if

    def _tell_kept(self, operations: Sequence[Operation]) -> None:
        """How to undo it: the journal is closed, so that no recovery does."""
        self.stop_reason = f"{self.stop_reason}; the candidate was kept"
        self._save()
        undo = [words for one in reversed(operations) if (words := one.describe_undo())]
        target = self.service.found.target
        told(self.watch.said, f"{self.candidate.describe()} stays on {target}; breakeven recover leaves it")
        told(self.watch.said, f"to undo it by hand: {'; '.join([*undo, f'restart {target}'])}")

    async def _keep_tokens(self) -> None:
        """While the service is up: its tokenizer is asked where its replies have no token ids."""
        endpoint = replace(self.service.endpoint, model=self.found.model)
        async with Pool() as pool:
            for name in SIDES:
                await keep_tokens(pool, endpoint, load_run(self.out / name))


def _rule(plan: LivePlan, asked: int, fresh: bool) -> StoppingRule | None:
    """Its looks are at pairs with the baseline before the candidate; the final comparison, with the baseline
    after it too, is at one of as many moments, so that sharing the error out over the looks covers it."""
    if plan.trial.repeats is not None or fresh or asked < MIN_REPEATS:
        return None
    return StoppingRule(asked, 1 - plan.trial.confidence)
