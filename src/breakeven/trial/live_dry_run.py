"""What a trial of a live service would do, in words: nothing is touched to say it."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.engines.speculation import SpeculationConfig
from breakeven.secrets import shown_argv
from breakeven.servers.lifecycle import State
from breakeven.servers.operation_kinds import RunCommand
from breakeven.servers.operations import Operation
from breakeven.servers.start_times import last_start_s
from breakeven.trial.live_change import operations_of
from breakeven.trial.live_order import Repeats
from breakeven.trial.live_plan import LivePlan
from breakeven.trial.live_service import Service
from breakeven.units import count, duration


def dry_run(service: Service, plan: LivePlan, state: State) -> str:
    """The change as a diff; each operation with its undo; restarts, waits, probes and requests, in order.
    `state` is how the service is now.

    Raises UsageError where a candidate could not be tried.
    """
    lines = [f"{service.found.target}: {service.dialect.title} at {service.endpoint.base_url}"]
    argv = service.found.as_run or service.found.argv
    lines += [f"  {shown_argv(argv)}"] if argv else []
    stopped = service.not_running(state)
    lines += [f"  warning: {words}" for words in (stopped, *service.warnings(())) if words is not None]
    lines += ["", *_baseline(service), *_requests(plan, plan.before)]
    for candidate in plan.candidates:
        lines += ["", *_candidate(service, plan, candidate)]
    return "\n".join(lines) + "\n"


def _baseline(service: Service) -> Iterator[str]:
    if not service.ends_with_us:
        yield "The baseline as it runs, without a restart"
        return
    yield "The baseline"
    yield f"  start it{_usual(last_start_s(service.found.target, False))}; it ends with breakeven"


def _candidate(service: Service, plan: LivePlan, candidate: SpeculationConfig) -> Iterator[str]:
    argv = service.candidate_argv(candidate, None)
    repeats = plan.repeats(service.dialect, candidate, plan.before)
    yield f"Candidate: {candidate.describe()}"
    for warning in service.dialect.warnings(candidate, service.found.argv, service.version):
        yield f"  warning: {warning}"
    yield from (f"  {line}" for line in service.lifecycle.diff(service.found, argv).splitlines())
    operations = operations_of(service, argv, candidate, service.version)
    if not service.ends_with_us:
        yield "  write the journal, by which  breakeven recover  can undo each of these"
    yield from (f"  {operation.describe()}" for operation in operations if not _is_undo_only(operation))
    for start, asked in enumerate(repeats.candidate):
        yield from _start(service, plan, plan.is_fresh(service.dialect, candidate))
        more = " at most" if plan.trial.repeats is None and len(asked) > 1 else ""
        yield from _requests(plan, len(asked), more)
        if start + 1 < len(repeats.candidate):
            yield "  the same again, to see whether two starts are alike"
    yield "  then, or on any failure, Ctrl-C or SIGTERM:"
    yield from (f"    {undo}" for operation in reversed(operations) if (undo := operation.describe_undo()))
    usual = _usual(last_start_s(service.found.target, False))
    yield f"    restart it as it was{usual}, and wait until a completion comes back"
    yield from _afterwards(plan, repeats)


def _is_undo_only(operation: Operation) -> bool:
    return isinstance(operation, RunCommand) and operation.argv is None


def _start(service: Service, plan: LivePlan, fresh: bool) -> Iterator[str]:
    usual = _usual(last_start_s(service.found.target, True))
    batch = count(plan.trial.concurrency, "request")
    of = "short ones of ours" if fresh else "of the prompts, cut short"
    yield f"  restart{usual}; ready within {duration(plan.start_limit_s)}, or the baseline is put back"
    yield f"  a completion, then {batch} at once ({of}); all must come back with tokens"


def _afterwards(plan: LivePlan, repeats: Repeats) -> Iterator[str]:
    if plan.order != "AB":
        asked = repeats.after([n for start in repeats.candidate for n in start])
        yield "  The baseline once it is back"
        yield from _requests(plan, len(asked))
    if plan.keep_if is not None:
        yield f"  If the verdict is {plan.keep_if}: the same change for good, with a restart"


def _requests(plan: LivePlan, repeats: int, more: str = "") -> Iterator[str]:
    prompts = len(plan.trial.workload.prompts)
    yield f"  warm-up: {count(plan.trial.warmup, 'request')}, then every prompt once, cut short; not kept"
    yield (
        f"  {count(prompts * repeats, 'request')}{more}: {count(prompts, 'prompt')} × "
        f"{count(repeats, 'repeat')}, {plan.trial.concurrency} at a time"
    )


def _usual(seconds: float | None) -> str:
    return "" if seconds is None else f" (about {duration(seconds)} when it was last seen)"
