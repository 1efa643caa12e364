"""What it would take to decide: more repeats, or more prompts.

Repeats only average out what varies from repeat to repeat. What prompts differ by stays, however often each
is asked, and only more prompts narrow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from breakeven.compare.records import Comparison
from breakeven.compare.student import t_quantile
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class Projection:
    """Half-widths on the log scale, so near enough shares: 0.03 is 3 %."""

    half: float
    """Of the interval as it is."""
    half_at_best: float
    """Of the interval after endless repeats of the same prompts; 0 if only repeats vary."""
    needed: float
    """The half-width at which an unchanged estimate would be decided."""
    repeats: int
    prompts: int

    @property
    def repeats_can_decide(self) -> bool:
        return self.half_at_best < self.needed

    @property
    def repeats_needed(self) -> int | None:
        """Repeats after which the interval would be narrow enough; None if none are."""
        if not self.repeats_can_decide:
            return None
        removable = self.half**2 - self.half_at_best**2
        return max(
            self.repeats + 1, math.ceil(self.repeats * removable / (self.needed**2 - self.half_at_best**2))
        )

    @property
    def prompts_needed(self) -> int | None:
        """Prompts, as varied as these, with which it would be; None if the estimate is the floor itself."""
        if self.needed <= 0:
            return None
        return max(self.prompts + 1, math.ceil(self.prompts * (self.half / self.needed) ** 2))


def project(comparison: Comparison) -> Projection | None:
    """Judge an undecided comparison from its own spread; None where nothing was paired.

    Without repeats of any prompt the whole spread counts as that of prompts.
    """
    speedup = comparison.speedup
    if speedup is None:
        return None
    effect, floor = abs(math.log(speedup.estimate)), math.log1p(comparison.floor)
    return Projection(
        half=_half(speedup),
        half_at_best=_half_at_best(comparison),
        needed=effect if effect >= floor else floor - effect,
        repeats=max(1, comparison.repeats),
        prompts=len(comparison.prompts),
    )


def _half(interval: Interval) -> float:
    return (math.log(interval.high) - math.log(interval.low)) / 2


def _half_at_best(comparison: Comparison) -> float:
    """t × √(variance between prompts / n): the variance of prompt means less the pairs' part in it."""
    prompts, tail = comparison.prompts, (1 - comparison.confidence) / 2
    if len(prompts) < 2:
        return 0.0
    means = np.log([prompt.speedup.estimate for prompt in prompts])
    between = max(0.0, float(means.var(ddof=1)) - _variance_of_means(comparison, tail))
    return t_quantile(tail, len(prompts) - 1) * math.sqrt(between / len(prompts))


def _variance_of_means(comparison: Comparison, tail: float) -> float:
    """The mean square error of a prompt's estimate, read back from the prompts' t intervals."""
    dof = sum(prompt.pairs - 1 for prompt in comparison.prompts)
    if dof == 0:
        return 0.0
    halves = [_half(p.speedup) for p in comparison.prompts if p.pairs > 1]
    return float(np.mean(np.square(halves))) / t_quantile(tail, dof) ** 2
