"""KnownTimes: step times of a cost that is known and stays, as a calibration or a model has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class KnownTimes:
    """StepTimes of the policy, written down beforehand."""

    def __init__(self, seconds: Sequence[Floats]) -> None:
        """`seconds`: of 1, 2, … sequences. Each as `seconds` below gives it, of as many tokens as are asked
        for at most."""
        self._seconds = seconds

    def seconds(self, most: int, sequences: int = 1) -> Floats:
        """Of a step of n = 0 … `most` tokens that decodes so many sequences, shape (most + 1,).

        Entry `sequences` is the plain step, as are those before it. It never falls."""
        return self._seconds[sequences - 1][: most + 1]

    def probe(self, sequences: int, most: int) -> int:
        """No draft is needed to learn what is known."""
        return 0
