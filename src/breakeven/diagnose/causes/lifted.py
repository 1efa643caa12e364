"""Causes that explain finds, and about which logs and counters say nothing more."""

from __future__ import annotations

from breakeven.diagnose.causes.cause import Cause, lifted
from breakeven.diagnose.causes.drafts import accepted_less
from breakeven.diagnose.causes.head import mismatched_head
from breakeven.diagnose.causes.left_over import suspicion
from breakeven.diagnose.causes.step_cost import compute_bound
from breakeven.diagnose.causes.window import too_long
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.speeds import is_slower
from breakeven.explain.records import Finding

REASONS: tuple[Cause, ...] = (mismatched_head, accepted_less, too_long, compute_bound)
"""Why verifying may cost more than it gives; what it costs is said with them."""


def weights_do_not_fit(evidence: Evidence) -> Finding | None:
    """Weights larger than the memory of all devices."""
    return lifted(evidence, "weights_do_not_fit")


def verification_too_dear(evidence: Evidence) -> Finding | None:
    """Verifying costs more than what is accepted saves, and nothing else says why."""
    if not is_slower(evidence) or any(reason(evidence) is not None for reason in REASONS):
        return None
    return lifted(evidence, "verification_too_dear")


def drafter_time(evidence: Evidence) -> Finding | None:
    """The drafter's own time, where something is left of a step that it could explain."""
    return lifted(evidence, "drafter_time") if suspicion(evidence) in ("sure", "maybe") else None


def steps_unlike(evidence: Evidence) -> Finding | None:
    """Plain steps of one server that differ by more than context: a doubt about the speeds themselves."""
    return lifted(evidence, "steps_unlike") if suspicion(evidence) in ("sure", "maybe") else None


CAUSES: tuple[Cause, ...] = (weights_do_not_fit, verification_too_dear, drafter_time, steps_unlike)
