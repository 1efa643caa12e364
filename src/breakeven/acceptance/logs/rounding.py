"""How many drafts there were, from a line that prints only rounded ratios of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

HALF_LENGTH = 0.005
"""Mean lengths are printed to 2 decimals, …"""
HALF_SHARE = 0.0005
"""… shares to 3."""
_SHARE = re.compile(r"[01]\.\d{1,9}", re.ASCII)
_MOST_POSITIONS = 256
SLACK = 1e-5
"""For an engine that divides in single precision (llama.cpp)."""
_ENUMERATED = 4096
"""A range as wide as this is left as it is: beyond it, more than one number fits."""


def drafts_between(
    accepted: int, drafted: int, mean_length: float | None, shares: Sequence[float] = ()
) -> tuple[int, int] | None:
    """The fewest and the most drafts that fit; None where no number does, or nothing bounds it.

    `mean_length` is 1 + accepted / drafts to 2 decimals; `shares[i]` is the share of drafts of which at least
    i + 1 tokens were accepted, to 3 decimals, for every position that a draft may have.
    """
    if drafted == 0 or (mean_length is None and not shares):
        return (0, 0) if drafted == 0 else None
    low, high = (math.ceil(drafted / len(shares)) if shares else 1), drafted
    if mean_length is not None:
        low, high = _narrowed(low, high, accepted, mean_length - 1, HALF_LENGTH + SLACK)
    if shares:
        low, high = _narrowed(low, high, accepted, sum(shares), (HALF_SHARE + SLACK) * len(shares))
    if high - low >= _ENUMERATED:
        return low, high
    fitting = [n for n in range(low, high + 1) if _fits(n, accepted, drafted, mean_length, shares)]
    return (fitting[0], fitting[-1]) if fitting else None


def shares_in(text: str) -> tuple[float, ...]:
    """A list of shares by position, `0.8, 0.5`; empty where it is none: above 1, rising, or no numbers."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > _MOST_POSITIONS or not all(map(_SHARE.fullmatch, parts)):
        return ()
    shares = tuple(map(float, parts))
    return shares if all(later <= earlier for earlier, later in itertools.pairwise((1.0, *shares))) else ()


def counts_by_position(drafts: int, accepted: int, shares: Sequence[float]) -> tuple[int, ...] | None:
    """The share of each position as a count, where exactly one fits each and they add up to `accepted`."""
    if not shares:
        return None
    counts = tuple(low for low, high in _ranges(drafts, shares) if low == high)
    return counts if len(counts) == len(shares) and sum(counts) == accepted else None


def _narrowed(low: int, high: int, accepted: int, ratio: float, half: float) -> tuple[int, int]:
    """The range in which accepted / n is within `half` of `ratio`."""
    if accepted == 0:
        return low, high
    if ratio + half <= 0:
        return 1, 0
    low = max(low, math.ceil(accepted / (ratio + half)))
    return low, min(high, math.floor(accepted / (ratio - half))) if ratio > half else high


def _fits(n: int, accepted: int, drafted: int, mean_length: float | None, shares: Sequence[float]) -> bool:
    if mean_length is not None and abs(1 + accepted / n - mean_length) > HALF_LENGTH + SLACK:
        return False
    if not shares:
        return True
    ranges = _ranges(n, shares)
    if any(low > high for low, high in ranges):
        return False
    # Every draft has a first token, and a later one for each that was accepted there.
    has_tokens = n + accepted - ranges[0][1] <= drafted
    return has_tokens and sum(low for low, _ in ranges) <= accepted <= sum(high for _, high in ranges)


def _ranges(drafts: int, shares: Sequence[float]) -> list[tuple[int, int]]:
    """By position the counts that round to its share, none above the one before."""
    half = HALF_SHARE + SLACK
    lows = [max(0, math.ceil(drafts * (share - half))) for share in shares]
    highs = [min(drafts, math.floor(drafts * (share + half))) for share in shares]
    lows = list(itertools.accumulate(reversed(lows), max))[::-1]
    return list(zip(lows, itertools.accumulate(highs, min), strict=True))
