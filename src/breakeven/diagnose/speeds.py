"""The two speeds: how much faster the candidate is, where that may be said."""

from __future__ import annotations

from statistics import geometric_mean

from breakeven.diagnose.evidence import Evidence
from breakeven.explain.records import Observation

SLOWER = 0.98
"""Candidate / baseline. Nearer to 1 the two are taken as alike: no cause is sought in a difference of 2 %."""
BETTER = 1.05
"""What another setting must give, as a factor: less is not worth a restart, nor surely there."""


def observations(evidence: Evidence) -> tuple[Observation, ...]:
    """Two speeds, of each set of prompts; none where they may not be compared."""
    case = evidence.case
    if case is not None and case.refused:
        return ()
    return evidence.observations or (case.observations if case is not None else ())


def speedup(evidence: Evidence) -> float | None:
    """Of the candidate over the baseline, the geometric mean over observations."""
    seen = observations(evidence)
    if not seen:
        return None
    return geometric_mean(one.baseline_tpot_s / one.candidate_tpot_s for one in seen)


def is_slower(evidence: Evidence) -> bool | None:
    """Whether the candidate is slower than the baseline; None where the two speeds are not known."""
    gain = speedup(evidence)
    return None if gain is None else gain < SLOWER
