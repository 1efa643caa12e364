"""The numbers of drafts that a line allows, found by trying every one: slow, and sure."""

import itertools
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction


def allowed(accepted: int, drafted: int, length: str, shares: Sequence[str]) -> list[int]:
    """Every number of drafts with some accepted tokens at each position that rounds to all that is printed;
    like the engine's own, each division may be off by a little."""
    return [n for n in range(1, drafted + 1) if _allows(n, accepted, drafted, length, shares)]


def _allows(n: int, accepted: int, drafted: int, length: str, shares: Sequence[str]) -> bool:
    if drafted > n * len(shares) or not _rounds(1 + Fraction(accepted, n), length):
        return False
    choices = [[count for count in range(n + 1) if _rounds(Fraction(count, n), share)] for share in shares]
    return any(
        sum(counts) == accepted
        and all(later <= earlier for earlier, later in itertools.pairwise(counts))
        and n + sum(counts[1:]) <= drafted
        for counts in itertools.product(*choices)
    )


def _rounds(value: Fraction, printed: str) -> bool:
    decimals = len(printed.partition(".")[2])
    half = Fraction(1, 2 * 10**decimals) + Fraction(1, 10**5)
    return abs(value - Fraction(Decimal(printed))) <= half
