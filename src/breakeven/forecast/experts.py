"""Distinct experts that verification wakes, as the cost of a step takes them."""

from __future__ import annotations

from breakeven.cost.anchored import Anchored
from breakeven.cost.coverage import distinct_experts
from breakeven.cost.geometry import Geometry
from breakeven.cost.measured import REUSE, Measured
from breakeven.cost.modelled import Modelled
from breakeven.cost.step import StepCost
from breakeven.forecast.records import Coverage
from breakeven.interval import Interval


def coverage(geometry: Geometry | None, cost: StepCost, most_tokens: int) -> Coverage | None:
    """For 1 … most_tokens tokens of one sequence; None without experts, or where they are not known."""
    experts = geometry.experts if geometry else None
    if experts is None:
        return None
    reuse = reuse_of(cost)
    ends = reuse.estimate, reuse.high, reuse.low
    points = tuple(
        (tokens, Interval(*(distinct_experts(experts, tokens, reuse=end) for end in ends)))
        for tokens in range(1, most_tokens + 1)
    )
    return Coverage(experts.count, experts.top_k, points)


def reuse_of(cost: StepCost) -> Interval:
    """Of experts, as the cost takes it."""
    modelled = cost.modelled if isinstance(cost, Anchored) else cost
    if isinstance(modelled, Modelled):
        ends = [one.reuse for one in modelled.reuse_ends]
        return Interval(modelled.reuse, min(ends), max(ends))
    return cost.reuse if isinstance(cost, Measured) else REUSE
