"""Tracked: a quantity that is told with noise and outliers, and that may change for good at any time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

RECENT = 5
"""Values that are kept: their median stands up to two outliers."""
LEAST = 3
"""Values of which most must agree before one is believed to be higher than it was."""
LEAP = 0.2
"""As a logarithm: what differs by more has changed, less is noise or drift. Four standard errors of a median
of five values with 10 % of noise each; it was not tuned on data."""


class Tracked:
    """The logarithm of a time. Constant memory, and constant time for each value told.

    Each value moves it by 1 / (values so far), no less than 1 / `memory`, and counts as no further away than
    LEAP. Where the median of the last ones is further away, it leaps there. Before there are LEAST, and after
    `forget`, the lowest stands for the median, and only downwards: a step may stall, but it does not take
    less than the work in it.
    """

    __slots__ = ("_last", "_memory", "_weight", "value")

    def __init__(self, value: float, weight: int, memory: int = 16) -> None:
        """`value` is believed at first as if `weight` values had told it."""
        self.value = value
        self._weight = weight
        self._memory = memory
        self._last: deque[float] = deque(maxlen=RECENT)

    @property
    def settled(self) -> bool:
        """Whether enough was told to stand up to a stall."""
        return len(self._last) >= LEAST

    def tell(self, told: float) -> bool:
        """Whether it leapt."""
        self._last.append(told)
        off = self._agreed() - self.value
        if off < -LEAP or (off > LEAP and self.settled):
            self.value += off
            return True
        self._weight = min(self._weight + 1, self._memory)
        self.value += min(max(told - self.value, -LEAP), LEAP) / self._weight
        return False

    def forget(self) -> None:
        """What was told last is too old to tell of now: the value stays until new ones say otherwise."""
        self._last.clear()

    def fade(self) -> None:
        """It is believed half as far above 0 as it was."""
        self.value = min(self.value, self.value / 2)

    def put_right(self, told: Sequence[float]) -> None:
        """As if these, one or more, had been told instead of the last ones."""
        self._last = deque(told, maxlen=RECENT)
        self.value = self._agreed()

    def _agreed(self) -> float:
        return middle(self._last) if self.settled else min(self._last)


def middle(values: Sequence[float] | deque[float]) -> float:
    """The median; of an even number, the upper of the two in the middle."""
    return sorted(values)[len(values) // 2]
