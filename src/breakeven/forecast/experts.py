"""Distinct experts that verification wakes, as the cost of a step takes them."""

from __future__ import annotations

from breakeven.cost.anchored import Anchored
from breakeven.cost.coverage import REUSE, REUSE_RANGE, distinct_experts
from breakeven.cost.geometry import Geometry
from breakeven.cost.modelled import Modelled
from breakeven.cost.step import StepCost
from breakeven.forecast.records import Coverage
from breakeven.interval import Interval


def coverage(
    geometry: Geometry | None, cost: StepCost, most_tokens: int, reuse: Interval | None = None
) -> Coverage | None:
    """For 1 … most_tokens tokens of one sequence; None without experts, or where they are not known.

    `reuse` is that of a trace of routing; without one it is what the cost takes.
    """
    experts = geometry.experts if geometry else None
    if experts is None:
        return None
    taken = reuse or reuse_of(cost)
    ends = taken.estimate, taken.high, taken.low
    points = tuple(
        (tokens, Interval(*(distinct_experts(experts, tokens, reuse=end) for end in ends)))
        for tokens in range(1, most_tokens + 1)
    )
    return Coverage(experts.count, experts.top_k, points)


def reuse_of(cost: StepCost) -> Interval:
    """Of experts, beyond chance: as a model takes it; beside a curve, whose own is beyond what sequences
    share, what is assumed."""
    modelled = cost.modelled if isinstance(cost, Anchored) else cost
    if not isinstance(modelled, Modelled):
        return Interval(REUSE, *REUSE_RANGE)
    ends = [one.reuse for one in modelled.reuse_ends]
    return Interval(modelled.reuse, min(ends), max(ends))
