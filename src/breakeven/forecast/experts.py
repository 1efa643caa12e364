"""Distinct experts that verification wakes, as the cost of a step takes them."""

from __future__ import annotations

from breakeven.cost.anchored import Anchored
from breakeven.cost.coverage import REUSE_RANGE, distinct_experts
from breakeven.cost.geometry import Geometry
from breakeven.cost.modelled import Modelled
from breakeven.cost.step import StepCost
from breakeven.forecast.records import Coverage
from breakeven.interval import Interval


def coverage(geometry: Geometry | None, cost: StepCost, most_tokens: int) -> Coverage | None:
    """For 1 … most_tokens tokens of one sequence; None without experts, or where they are not known."""
    experts = geometry.experts if geometry else None
    if experts is None:
        return None
    least, most = REUSE_RANGE
    taken = _reuse(cost)
    points = tuple(
        (
            tokens,
            Interval(
                distinct_experts(experts, tokens, reuse=taken),
                distinct_experts(experts, tokens, reuse=max(most, taken)),
                distinct_experts(experts, tokens, reuse=min(least, taken)),
            ),
        )
        for tokens in range(1, most_tokens + 1)
    )
    return Coverage(experts.count, experts.top_k, points)


def _reuse(cost: StepCost) -> float:
    """Of experts, as the cost takes it."""
    modelled = cost.modelled if isinstance(cost, Anchored) else cost
    return modelled.reuse if isinstance(modelled, Modelled) else REUSE_RANGE[0]
