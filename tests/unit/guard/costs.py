"""Step times that are easy to reckon with."""

from __future__ import annotations

import numpy as np

from breakeven.guard.known_times import KnownTimes
from breakeven.guard.told_steps import MOST_TOKENS

SEQUENCES = 200


def line(flat: float, token: float) -> KnownTimes:
    """A step takes flat + token · its tokens, in seconds; of up to so many sequences."""
    sizes = np.arange(MOST_TOKENS + 1)
    return KnownTimes([flat + token * np.maximum(sizes, c) for c in range(1, SEQUENCES + 1)])
