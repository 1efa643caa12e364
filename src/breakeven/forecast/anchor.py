"""Anchor: the one step of a server that a run has measured, which a modelled cost can be tied to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.cost.modelled import HIGH, LOW, Modelled
from breakeven.cost.step import Step
from breakeven.cost.stretches import point
from breakeven.errors import UsageError
from breakeven.trace.run import Run
from breakeven.units import milliseconds

SPECULATED = (
    "the record's server speculated: a lossless drafter changes no output, so acceptance on it is the same; "
    "its times are no baseline's, and none of them are used"
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A plain step as it was measured."""

    step: Step
    seconds: float


def anchor_of(run: Run) -> Anchor:
    """The step at the concurrency that the run kept, with the mean context of its requests.

    It is read off the events' times as a calibration's points are: see cost/stretches.py. Raises UsageError,
    with the reason alone, where the run tells no step: it came in an open loop, speculated, was voided by its
    self-check, or had too few steps at its whole concurrency.
    """
    meta = run.meta
    concurrency = meta.schedule.concurrency
    if meta.schedule.mode != "closed" or concurrency is None:
        raise UsageError("its requests came in an open loop, at no fixed concurrency")
    if meta.status == "void":
        raise UsageError("its self-check failed")
    if speculated(run):
        raise UsageError("its server speculated, so its steps are no plain ones")
    traces = list(run.traces())
    check: dict[str, Any] = dict(meta.self_check or {})
    lag_ms = (check.get("event_loop_lag_ms") or {}).get("p99")
    found = point(traces, concurrency, lag_s=(lag_ms or 0.0) / 1e3)
    if found is None:
        raise UsageError(f"it has too few steps with all of {concurrency} in flight decoded at once")
    return Anchor(Step(1, concurrency, found.context_tokens or 0.0), found.step_s)


def check_same_machine(model: Modelled, anchor: Anchor, whose: str, words: str) -> None:
    """Raises UsageError for a step that the model cannot be of: what lies between would be taken for a rest
    that no token adds to, and every draft would be verified for free. `words` say what is modelled."""
    model_s = model.total_s(anchor.step)
    times = anchor.seconds / model_s
    if LOW <= times <= HIGH:
        return
    raise UsageError(
        f"{whose[0].lower()}{whose[1:]} is {times:.3g} times what a model of {words} takes, "
        f"{milliseconds(model_s)} ms, and {LOW:g} to {HIGH:g} times are expected: the step is of another "
        "machine or model; type  breakeven calibrate URL  for the server that made it and then --calibration "
        "FILE, or its own --model, --hardware and --tp; for another machine give a step measured there as "
        "--step-ms"
    )


def speculated(run: Run) -> bool:
    """Whether its server counted any drafts, in all or of a request."""
    return any(one is not None and bool(one.drafts or one.drafted_tokens) for one in _counted(run))


def _counted(run: Run) -> Iterator[SpecCounters | None]:
    yield run.meta.counters
    yield from (trace.speculation for trace in run.traces())
