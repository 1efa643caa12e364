"""Which of several settings to take when the best ones cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.errors import UsageError
from breakeven.interval import Interval


def smallest_within_noise(candidates: Mapping[int, Interval]) -> int:
    """The smallest window whose estimate reaches the low end of the best one's interval.

    Drafting less costs less where drafts fail and frees the batch, so ties go to the smaller window: the
    one-standard-error rule of Breiman et al. (1984) with the interval in place of one standard error.
    Speedups hold for one concurrency: choose once for each. Raises UsageError without candidates.
    """
    if not candidates:
        raise UsageError("no window was measured: name at least one")
    best = max(candidates.values(), key=lambda speedup: speedup.estimate)
    return min(window for window, speedup in candidates.items() if speedup.estimate >= best.low)
