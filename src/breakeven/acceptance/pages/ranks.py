"""Counters of several engines or data-parallel ranks, taken together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from breakeven.acceptance.combine import total
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.exposition import MAX_RANKS, MAX_SAMPLES, Samples, rank_of
from breakeven.units import count

CANNOT_BE = "reported counts of speculation that contradict themselves, or are none (NaN, below 0)"
TOO_MANY = f"the page names more than {MAX_RANKS:,} ranks, which no server has: what it counts is left out"

_PARTS = ("position", "token_position", "finished_reason")
"""Labels of what a rank counts apart."""


def summed(parts: Iterable[SpecCounters], source: str) -> SpecCounters:
    """The sum; without any count where there is no part."""
    return total(parts) or SpecCounters(source=source)


def left_out(ranks: Mapping[str, SpecCounters | None]) -> tuple[str, ...]:
    """Which ranks the sum lacks, in a sentence; none where it lacks none."""
    silent = sum(spec is None for spec in ranks.values())
    if not silent:
        return ()
    return (f"{silent} of {count(len(ranks), 'rank')} {CANNOT_BE}, and is left out",)


def are_too_many(samples: Samples) -> bool:
    """Whether the ranks are more than any server has: adding them up one by one would take long."""
    if sum(map(len, samples.values())) > MAX_SAMPLES:
        return True
    crowded = (each for each in samples.values() if len(each) > MAX_RANKS)
    return any(len({rank_of(sample.labels, *_PARTS) for sample in each}) > MAX_RANKS for each in crowded)
