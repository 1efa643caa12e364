"""Anchor: the one step of a server that a run has measured, which a modelled cost can be tied to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.cost.step import Step
from breakeven.cost.stretches import point
from breakeven.errors import UsageError
from breakeven.trace.run import Run

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


def speculated(run: Run) -> bool:
    """Whether its server counted any drafts, in all or of a request."""
    return any(one is not None and bool(one.drafts or one.drafted_tokens) for one in _counted(run))


def _counted(run: Run) -> Iterator[SpecCounters | None]:
    yield run.meta.counters
    yield from (trace.speculation for trace in run.traces())
