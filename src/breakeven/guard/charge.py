"""Charge: what a step with drafts is held to have cost, once it is known how long it took."""

from __future__ import annotations

import math

from breakeven.guard.tracked import LEAP

MOST = 4.0
"""Times what was believed of it that a step is charged at most, and 1 / MOST at least."""


class Charge:
    """Of one server's steps with drafts, in their order. Constant memory.

    A step may stall and a clock may jump, which is not the drafts' doing; noise and drift is what step times
    follow by themselves. So a step is charged with what was believed of it, unless it and the one before it
    both differ from that by more than LEAP, and in the same way: then with the smaller difference. Of a
    slowdown the first step alone is charged too little.
    """

    def __init__(self) -> None:
        self._off = 0.0
        """As a logarithm, of the step before."""

    def of(self, believed: float, took: float) -> float:
        """In plain steps, as both are, above 0. No step takes less than a plain one."""
        off = min(max(math.log(took / believed), -math.log(MOST)), math.log(MOST))
        alike = min(off, self._off, key=abs) if off * self._off > 0 else 0.0
        self._off = off
        return max(believed * math.exp(alike), 1.0) if abs(alike) > LEAP else believed
