"""Evidence of two servers that were compared, with a known cost of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.cost.step import StepCost
from breakeven.diagnose.evidence import Evidence
from breakeven.explain.case import Case
from breakeven.explain.explain import explain
from breakeven.explain.records import Observation
from tests.unit.diagnose.healthy import COUNTERS, healthy, log
from tests.unit.explain.cases import calibrated

PLAIN_S = 0.013
"""Of the curve of tests/unit/explain/cases.py."""
DENSE = calibrated(moe=False)
OFF = (
    "WARNING 11-02 09:14:03 [vllm.py:7] Async scheduling not supported with ngram-based speculative decoding "
    "and will be disabled."
)


def counted(rates: tuple[float, ...], drafts: int = 1000, steps: int | None = None) -> SpecCounters:
    """Drafts of the whole window, accepted at each position in these shares of them."""
    accepted = tuple(round(rate * drafts) for rate in rates)
    return SpecCounters(
        drafts if steps is None else steps, drafts, drafts * len(rates), sum(accepted), accepted, "test"
    )


def observed(gain: float, counters: SpecCounters = COUNTERS) -> Observation:
    """Two speeds `gain` apart, and what was counted of the candidate."""
    rate, share = counters.acceptance_rate, counters.draft_share
    drafted = None if not counters.drafts else (counters.drafted_tokens or 0) / counters.drafts
    return Observation(
        "chat",
        PLAIN_S,
        PLAIN_S / gain,
        None if rate is None else (rate, rate),
        None if share is None else (share, share),
        drafted,
    )


def compared(
    gain: float, counters: SpecCounters = COUNTERS, cost: StepCost = DENSE, **changes: Any
) -> Evidence:
    """As explain sees it too. `gain` is the candidate's speed over the baseline's."""
    made = healthy(counters=counters, other_sources=(), cost=cost, **changes)
    case = Case(
        model=None,
        geometry=None,
        hardware=None,
        k=made.drafting.k or 1,
        method=made.drafting.method,
        observations=(observed(gain, counters),),
        engine=made.engine,
        engine_version=made.version,
        sequences=round(made.sequences or 1),
        measured=cost,
    )
    return replace(made, observations=case.observations, case=case, explanation=explain(case))


def uncosted(gain: float, counters: SpecCounters, **changes: Any) -> Evidence:
    """Two speeds and counts alone."""
    made = healthy(counters=counters, other_sources=(), **changes)
    return replace(made, observations=(observed(gain, counters),))


def explained(case: Case, **changes: Any) -> Evidence:
    """What is known of a case of explain's."""
    return replace(
        Evidence(engine=case.engine, version=case.engine_version),
        observations=case.observations,
        case=case,
        explanation=explain(case),
        **changes,
    )


def started(*lines: str) -> LogSummary:
    """A log with these lines at its start."""
    return log(facts=lines)
