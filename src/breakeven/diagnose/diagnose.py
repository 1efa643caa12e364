"""Evidence → Diagnosis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from breakeven.diagnose.causes import OTHERS, VOIDING
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.speeds import is_slower
from breakeven.diagnose.unknown import unknown
from breakeven.explain.places import all_filled, filled
from breakeven.explain.records import ORDER, Finding, ranked


def diagnose(evidence: Evidence) -> Diagnosis:
    """Every cause that the evidence shows, most telling first, and what would have to be known for more."""
    found = by_confidence(_found(VOIDING, evidence), _found(OTHERS, evidence))
    found = tuple(filled(finding, evidence.places) for finding in found)
    if evidence.explanation is not None:
        evidence = replace(evidence, explanation=all_filled(evidence.explanation, evidence.places))
    return Diagnosis(evidence, found, unknown(evidence), is_slower(evidence))


def by_confidence(voiding: Iterable[Finding], others: Iterable[Finding]) -> tuple[Finding, ...]:
    """Both ranked, and at equal confidence those first that void the others, however many seconds these
    explain."""
    together = (*ranked(voiding), *ranked(others))
    return tuple(sorted(together, key=lambda one: ORDER.index(one.confidence)))


def _found(causes: Iterable[Cause], evidence: Evidence) -> list[Finding]:
    return [finding for cause in causes if (finding := cause(evidence)) is not None]
