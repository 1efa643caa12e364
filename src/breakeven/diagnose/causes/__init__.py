"""Causes: one function each, from Evidence to a Finding or None. Those earlier in a tuple tell more at equal
confidence."""

from __future__ import annotations

from breakeven.diagnose.causes import (
    break_even,
    death,
    degenerate,
    drafts,
    engine,
    experts,
    head,
    lifted,
    measurement,
    memory,
    outcome,
    step_cost,
    traffic,
    window,
)
from breakeven.diagnose.causes.cause import Cause

VOIDING: tuple[Cause, ...] = (*death.CAUSES, *measurement.VOIDING, *degenerate.CAUSES, *traffic.CAUSES)
"""What they find makes the counts or speeds mean something else, and so what others conclude from these."""
OTHERS: tuple[Cause, ...] = (
    *head.CAUSES,
    *engine.CAUSES,
    *drafts.CAUSES,
    *memory.CAUSES,
    *window.CAUSES,
    *break_even.CAUSES,
    *experts.CAUSES,
    *step_cost.CAUSES,
    *measurement.OTHERS,
    *outcome.CAUSES,
    *lifted.CAUSES,
)
CAUSES = (*VOIDING, *OTHERS)
