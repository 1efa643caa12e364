"""The trial of one live service: the baseline as it runs, the candidate in its place, and the baseline back.

Only one side is up at a time. The folder is that of any trial: run folders `baseline` and `candidate`, and
trial.json. The baseline that is back is asked into the same run folder as before, as later repeats.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from breakeven.client.asker import Asker
from breakeven.client.failures import GIVE_UP_AFTER, Failures
from breakeven.client.load import ClosedLoop
from breakeven.client.tokenise import keep_tokens
from breakeven.client.transport import Pool
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.measure import MeasurePlan, describe
from breakeven.servers.lifecycle import Found
from breakeven.trace.journal import RunWriter
from breakeven.trace.run import Run, load_run
from breakeven.trial.left_out import LEFT_OUT
from breakeven.trial.live_basis import Basis, basis_of, refuse_void
from breakeven.trial.live_candidate import LiveTrial
from breakeven.trial.live_change import ready
from breakeven.trial.live_dry_run import dry_run
from breakeven.trial.live_guard import while_alive
from breakeven.trial.live_order import ORDERS, Order
from breakeven.trial.live_plan import LivePlan
from breakeven.trial.live_service import Service
from breakeven.trial.live_side import RELOAD_S, measuring
from breakeven.trial.live_watch import Watch
from breakeven.trial.plan import SIDES
from breakeven.trial.result import TrialResult
from breakeven.trial.start_facts import StartFacts

__all__ = [
    "ORDERS",
    "Basis",
    "LivePlan",
    "Order",
    "Service",
    "Watch",
    "basis_of",
    "dry_run",
    "measure_baseline",
    "refuse_void",
    "try_candidate",
]

BASELINE, CANDIDATE = SIDES
AGAIN = {"started"}
"""Evidence that is another one after each restart, ours among them."""


async def measure_baseline(service: Service, plan: LivePlan, out: Path, watch: Watch) -> Run:
    """Ask the service as it runs, without a restart, into out/baseline; a server that ends with breakeven is
    started first. It holds the half of the repeats that comes before the candidate (all of them for AB).

    Raises UsageError where it does not run, or could not be changed afterwards; EndpointError where it does
    not answer, ServerError where it cannot be started, StorageError.
    """
    await service.lifecycle.check_rights()
    reload_s = await _started(service, plan, watch)
    watch.begins(
        f"{BASELINE}, as it runs", 1, len(plan.order), plan.before * len(plan.trial.workload.prompts)
    )
    facts = await StartFacts.of(service)
    async with Pool() as pool:
        asker = await Asker.find(
            pool, service.endpoint, plan.trial.sampling, service.timeouts, service.ask_for
        )
        load = ClosedLoop(plan.trial.concurrency)
        measured = MeasurePlan(plan.trial.workload, plan.trial.sampling, load, plan.most, plan.trial.warmup)
        extra = {**facts.to_json(), RELOAD_S: reload_s}
        meta = replace(describe(asker, measured, "trial-side"), extra=extra)
        see = Failures(max(GIVE_UP_AFTER, plan.trial.concurrency)).see
        writer = RunWriter.create(out / BASELINE, meta, plan.trial.workload.prompts)
        with measuring(BASELINE, plan.trial, writer, watch, see) as (side, end):
            await side.begin(asker, any(plan.is_fresh(service.dialect, one) for one in plan.candidates))
            await while_alive(service, BASELINE, side.ask(range(plan.before), _limit_s(plan)))
            side.finish(end)
        run = load_run(out / BASELINE)
        await keep_tokens(pool, asker.endpoint, run)
    return run


async def _started(service: Service, plan: LivePlan, watch: Watch) -> float | None:
    """Seconds that it took; None where it ran already. Raises UsageError for somebody's that does not run:
    what answers at its address then is another."""
    state = await service.lifecycle.state()
    if (why := service.not_running(state)) is not None:
        raise UsageError(why)
    if state.condition == "running":
        return None
    await service.lifecycle.restart()
    answers = await ready(service, plan.start_limit_s, False, None, (), 1, watch.starting)
    return answers.seconds


def _limit_s(plan: LivePlan) -> float | None:
    """Half of the measuring is the baseline's."""
    limit_s = plan.trial.time_limit_s
    return None if limit_s is None else limit_s / 2 * plan.before / plan.most


async def try_candidate(
    service: Service,
    plan: LivePlan,
    candidate: SpeculationConfig,
    out: Path,
    watch: Watch,
    baseline: Path | None = None,
) -> TrialResult:
    """Put the candidate in the service's place, measure it, and put the service back, verified with a
    completion; with ABA and ABBA measure that again. Whatever happens, the service is back as it was found,
    unless the verdict is the one with which the candidate is to be kept.

    `out` holds `baseline` from `measure_baseline`; for a further candidate give another `out`, and the
    baseline's run folder, which is copied. A candidate that fails is a result: its verdict is `refused`, and
    says why. Raises UsageError for what cannot be tried, with nothing touched; StorageError; BreakevenError
    where the service could not be put back, or is not well afterwards; CancelledError or KeyboardInterrupt
    once it is back. From the first change on, what was measured is saved.
    """
    if service.ends_with_us and plan.keep_if is not None:
        raise UsageError("a process that breakeven starts ends with it: leave out --keep-if")
    await service.lifecycle.check_rights()
    service = replace(service, found=await _as_measured(service))
    found = _baseline(out, baseline, plan)
    refuse_void([basis_of(plan, service.dialect, candidate, found)], found)
    return await LiveTrial(service, plan, candidate, out, watch, found).run()


async def _as_measured(service: Service) -> Found:
    """The server as it is now. Raises UsageError where that is not what was measured: somebody changed it
    meanwhile, and the trial would change more than speculation."""
    before, now = service.found, await service.lifecycle.inspect()
    names = {*before.evidence, *now.evidence} - AGAIN
    changed = sorted(name for name in names if before.evidence.get(name) != now.evidence.get(name))
    changed += ["its command line"] if before.argv != now.argv else []
    changed += ["its environment"] if before.environment != now.environment else []
    if changed:
        raise UsageError(
            f"{before.target} is not as it was when its baseline was measured; changed since: "
            f"{', '.join(changed)}. Nothing was touched: measure it again"
        )
    return now


def _baseline(out: Path, elsewhere: Path | None, plan: LivePlan) -> Run:
    """The baseline's run, in `out`. Raises RunFormatError where there is none, StorageError."""
    folder = out / BASELINE
    if elsewhere is not None and elsewhere.resolve() != folder.resolve():
        _copy(load_run(elsewhere), folder, plan.before)
    return load_run(folder)


def _copy(run: Run, folder: Path, repeats: int) -> None:
    """The first of its repeats only: those after another candidate are no part of this one's trial."""
    left_out = {n: why for n, why in run.meta.extra.get(LEFT_OUT, {}).items() if int(n) < repeats}
    meta = replace(run.meta, extra={**run.meta.extra, LEFT_OUT: left_out})
    writer = RunWriter.create(folder, meta, run.prompts())
    for trace in run.traces():
        if trace.repeat < repeats:
            writer.append(trace)
    writer.finish(meta)
