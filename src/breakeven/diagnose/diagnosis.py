"""Diagnosis: what `breakeven diagnose` found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.diagnose.evidence import Evidence
from breakeven.explain.records import Finding


@dataclass(frozen=True)
class Diagnosis:
    """Findings are ranked, most telling first. None of them is a result too: a healthy server."""

    evidence: Evidence
    findings: tuple[Finding, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)
    """By input that is not known: what to type to know it."""
    is_slower: bool | None = None
    """Whether the candidate is slower than the baseline; None where the two speeds are not known."""
