"""ToldSizes: what steps take by the tokens in them, where it was told, and bounds where it was not."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from breakeven.guard.tracked import Tracked

Floats = NDArray[np.float64]

CHANGED = 0.01
"""A logarithm that moved by less is not worth making an array again for."""
MEMORY = 64
"""Values that the correction of a size is the mean of: the shape of a curve is the server's, and stays."""


class ToldSizes:
    """The logarithms of step seconds by size, relative to a level that all sizes share.

    Each told size has a correction of the curve that was believed before. One that was not told takes what
    its told neighbours have: `between` is what it probably takes, `at_most` what it takes at most, if no step
    takes less time for more tokens. As memory, at most one Tracked for each size of the curve.
    """

    def __init__(self, curve: Floats, at_most: Floats) -> None:
        """`curve`: entry n is of n tokens; `at_most`: the upper end of its error; shape (sizes,) each."""
        self._curve = curve
        self._margin = at_most - curve
        self._at: dict[int, Tracked] = {}
        self._order: list[int] = []
        self._corrections: list[float] = []

    def __len__(self) -> int:
        """Sizes that were told."""
        return len(self._order)

    def begin(self, size: int, correction: float, weight: int) -> None:
        """Expect a size for the first time, with what is believed of it, as of Tracked."""
        place = bisect_left(self._order, size)
        self._order.insert(place, size)
        self._corrections.insert(place, correction)
        self._at[size] = Tracked(correction, weight, MEMORY)

    def knows(self, size: int) -> bool:
        """Whether it has begun."""
        return size in self._at

    def settled(self, size: int) -> bool:
        """Whether it was told often enough to stand up to a stall."""
        return size in self._at and self._at[size].settled

    def lies_between(self, size: int) -> bool:
        """Whether it is settled, or both its neighbours are."""
        place = bisect_left(self._order, size)
        if place == len(self._order):
            return False
        nearest = self._order[place]
        below = nearest if nearest == size else self._order[max(place - 1, 0)]
        return below <= size and self.settled(below) and self.settled(nearest)

    def correction(self, size: int) -> float:
        """Of a size that has begun."""
        return self._at[size].value

    def tell(self, size: int, correction: float) -> bool:
        """Of a size that has begun; whether that changes the arrays."""
        self._at[size].tell(correction)
        place = bisect_left(self._order, size)
        if abs(self._at[size].value - self._corrections[place]) <= CHANGED:
            return False
        self._corrections[place] = self._at[size].value
        return True

    def between(self) -> Floats:
        """Shape (sizes,): the curve, with corrections that are linear between told sizes."""
        if not self._order:
            return self._curve
        sizes = np.arange(len(self._curve))
        corrected: Floats = self._curve + np.interp(sizes, self._order, self._corrections)
        return corrected

    def at_most(self, below: float) -> Floats:
        """Shape (sizes,): told sizes as told; others with the larger of their neighbours' corrections, and no
        more than the next larger size that was told. `below` is the correction below the smallest of them."""
        if not self._order:
            return self._curve + below + self._margin
        order, corrections = np.array(self._order), np.array(self._corrections)
        sizes, last = np.arange(len(self._curve)), len(order) - 1
        place = np.searchsorted(order, sizes)
        above = np.minimum(place, last)
        beneath = np.where(place > 0, corrections[place - 1], below)
        guess = self._curve + np.maximum(beneath, corrections[above]) + self._margin
        told = self._curve[order[above]] + corrections[above]
        most: Floats = np.where(place <= last, np.minimum(guess, told), guess)
        most[order] = self._curve[order] + corrections
        return most
