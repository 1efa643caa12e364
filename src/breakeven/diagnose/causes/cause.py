"""Cause: one reason why speculation does not pay, or seems to, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable

from breakeven.diagnose.evidence import Evidence
from breakeven.explain.records import ORDER, Confidence, Finding

Cause = Callable[[Evidence], Finding | None]
"""None where the evidence does not show it."""


def lifted(evidence: Evidence, name: str) -> Finding | None:
    """What explain found of this cause."""
    found = evidence.explanation.findings if evidence.explanation is not None else ()
    return next((one for one in found if one.id == name), None)


def at_most(confidence: Confidence, limit: Confidence) -> Confidence:
    """The lower of two confidences."""
    return max(confidence, limit, key=ORDER.index)
