"""What intervals say, given a floor below which a change counts as none."""

from __future__ import annotations

from typing import Literal

from breakeven.compare.records import Comparison
from breakeven.interval import Interval
from breakeven.units import change

Outcome = Literal["faster", "slower", "same", "undecided"]


def outcome(speedup: Interval, floor: float) -> Outcome:
    """faster and slower: the interval excludes 1 and the estimate reaches the floor; same: the whole interval
    lies within the floor; anything else is undecided, which is not the same as `same`.
    """
    if speedup.low > 1 and speedup.estimate >= 1 + floor:
        return "faster"
    if speedup.high < 1 and speedup.estimate <= 1 / (1 + floor):
        return "slower"
    if 1 / (1 + floor) <= speedup.low and speedup.high <= 1 + floor:
        return "same"
    return "undecided"


def disagreement(comparison: Comparison) -> str | None:
    """`faster on copy (+31.0 %), slower on math (−9.1 %)`; None unless some categories go each way."""
    found = {
        category: outcome(interval, comparison.floor) for category, interval in comparison.by_category.items()
    }
    parts = []
    for direction in ("faster", "slower"):
        named = [
            f"{category} ({change(comparison.by_category[category].estimate)})"
            for category, which in found.items()
            if which == direction
        ]
        if not named:
            return None
        parts.append(f"{direction} on {', '.join(named)}")
    return ", ".join(parts)
