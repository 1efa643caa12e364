"""The interval of a mean log ratio over prompts and repeats.

Two things scatter the log ratios d[prompt, repeat]: prompts differ, and so do repeats as wholes, because a
busy machine slows every prompt of a repeat at once. Resampling repeats inside each prompt by itself would
average that second part away: where repeats scatter as much as pairs do, its 95 % interval over 8 prompts and
2 repeats holds the truth in 74 % of simulated cases. So:

- prompts are resampled with replacement, one fewer than there are, which makes the variance right for a small
  number of them (Rao & Wu 1988);
- repeats are resampled for all prompts together, by normal multipliers (the wild bootstrap, Liu 1986): with
  two or three repeats there is too little to draw from;
- the noise of single pairs would count in both, so the spread is scaled to the two-way variance
  V_prompts + V_repeats − V_pairs (Cameron, Gelbach & Miller 2011), or to the largest of the three if that is
  more: each by itself is already part of the truth;
- tails are stretched from the normal's to Student's t, as in the expanded percentile interval (Hesterberg
  2015), with the degrees of freedom of Satterthwaite (1946), and are never shorter than that t interval: a
  handful of prompts shows skew, but not tails.

What is resampled is a sample of prompts: the interval speaks for prompts like those. With one prompt only its
repeats vary, and the interval speaks for that prompt alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from breakeven.compare.student import t_quantile, z_quantile
from breakeven.interval import Interval

Array = NDArray[np.float64]

RESAMPLES = 4000
_DEEPEST_TAIL = 0.005
"""20 of 4,000 resamples lie beyond it; tails further out come from the t distribution alone."""
_CHUNK_VALUES = 2**22
LARGEST_LOG = 300 * math.log(10)
_CACHED_PROMPTS = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """The mean of a table of log ratios, taken apart. Variances are of the mean, not of one value."""

    estimate: float
    by_prompt: Array
    """Each prompt's mean less the estimate, shape (n,)."""
    by_repeat: Array
    """What each repeat adds to the estimate, summing to 0, shape (R,)."""
    prompt_variance: float
    repeat_variance: float
    pair_variance: float

    @property
    def variance(self) -> float:
        parts = self.prompt_variance, self.repeat_variance, self.pair_variance
        return max(*parts, self.prompt_variance + self.repeat_variance - self.pair_variance)

    @property
    def dof(self) -> float:
        """Satterthwaite's, rounded down to a tenth."""
        shares = (self.prompt_variance, self.by_prompt.size), (self.repeat_variance, self.by_repeat.size)
        below = sum(variance**2 / (size - 1) for variance, size in shares if size > 1)
        both = self.prompt_variance + self.repeat_variance
        return max(1.0, math.floor(10 * both**2 / below) / 10) if below else 1.0


def interval(log_ratios: Array, alpha: float, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The geometric mean ratio over prompts with its 1 − alpha interval.

    `log_ratios` has shape (prompts, repeats) and NaN where a pair is missing; every prompt has at least one.
    With a single pair there is no spread to judge by: low and high equal the estimate.
    """
    parts = take_apart(log_ratios)
    deviations = _deviations(parts, seed, resamples)
    tail = alpha / 2
    resolved = max(tail, _DEEPEST_TAIL)
    below, above = np.quantile(deviations, [resolved, 1 - resolved])
    student = t_quantile(tail, parts.dof)
    stretch = student / z_quantile(resolved)
    shortest = student * math.sqrt(parts.variance)
    low = parts.estimate + min(float(below) * stretch, -shortest)
    high = parts.estimate + max(float(above) * stretch, shortest)
    return Interval(ratio_of(parts.estimate), ratio_of(low), ratio_of(high))


def take_apart(log_ratios: Array) -> Parts:
    """Split the scatter of (prompts, repeats) log ratios into that of prompts, repeats and single pairs."""
    log_ratios = log_ratios[:, ~np.isnan(log_ratios).all(axis=0)]
    there = ~np.isnan(log_ratios)
    values = np.where(there, log_ratios, 0.0)
    n, repeats = values.shape
    pairs = there.sum(axis=1)
    prompt_means = values.sum(axis=1) / pairs
    estimate = float(prompt_means.mean())
    by_prompt = prompt_means - estimate
    within = np.where(there, values - prompt_means[:, None], 0.0)
    by_repeat = (within / pairs[:, None]).sum(axis=0) / n
    single = np.where(there, within - within.sum(axis=0) / there.sum(axis=0), 0.0)
    single_dof = int(pairs.sum()) - n - repeats + 1
    return Parts(
        estimate,
        by_prompt,
        by_repeat,
        prompt_variance=float(by_prompt @ by_prompt) / (n * (n - 1)) if n > 1 else 0.0,
        repeat_variance=float(by_repeat @ by_repeat) * repeats / (repeats - 1) if repeats > 1 else 0.0,
        pair_variance=float((single**2).sum()) / single_dof / int(pairs.sum()) if single_dof > 0 else 0.0,
    )


def _deviations(parts: Parts, seed: int, resamples: int) -> Array:
    """Resampled means less the estimate, shape (resamples,)."""
    n, repeats = parts.by_prompt.size, parts.by_repeat.size
    deviations = np.zeros(resamples)
    if n > 1:
        deviations += np.concatenate([draws @ parts.by_prompt for draws in _prompt_draws(n, seed, resamples)])
    if repeats > 1:
        scale = math.sqrt(repeats / (repeats - 1))
        deviations += _multipliers(repeats, seed, resamples) @ parts.by_repeat * scale
    both = parts.prompt_variance + parts.repeat_variance
    return deviations * math.sqrt(parts.variance / both) if both else deviations


def _prompt_draws(n: int, seed: int, resamples: int) -> Iterator[Array]:
    """Shares of each prompt in each resample, in pieces of shape (some, n), `resamples` rows in all."""
    if n <= _CACHED_PROMPTS:
        yield _few_prompt_draws(n, seed, resamples)
        return
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK_VALUES // n)
    for start in range(0, resamples, rows):
        yield _draw(rng, n, min(rows, resamples - start))


@lru_cache(maxsize=16)
def _few_prompt_draws(n: int, seed: int, resamples: int) -> Array:
    return _draw(np.random.default_rng(seed), n, resamples)


def _draw(rng: np.random.Generator, n: int, rows: int) -> Array:
    return rng.multinomial(n - 1, np.full(n, 1 / n), size=rows) / (n - 1)


@lru_cache(maxsize=16)
def _multipliers(repeats: int, seed: int, resamples: int) -> Array:
    return np.random.default_rng((seed, repeats)).standard_normal((resamples, repeats))


def ratio_of(log_ratio: float) -> float:
    """The ratio, kept within what a float holds and can be divided by: a wide interval ends at 1e±300."""
    return math.exp(max(-LARGEST_LOG, min(log_ratio, LARGEST_LOG)))
