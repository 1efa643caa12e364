"""Intervals that speak for the prompts asked: one prompt's speedup, one category's.

Their spread is that of repeats of one prompt. Few repeats say little of it, so all prompts are pooled for
it, as in an analysis of variance: 8 prompts × 2 repeats give 8 degrees of freedom where one prompt has 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from breakeven.compare.bootstrap import Array, ratio_of
from breakeven.compare.student import t_quantile
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class PairNoise:
    """The scatter of one pair's log ratio about its prompt's mean; 0 degrees of freedom: it is unknown."""

    variance: float
    dof: int


def pair_noise(log_ratios: Array) -> PairNoise:
    """Pool over the rows of (prompts, repeats) log ratios, NaN where a pair is missing."""
    means = np.nanmean(log_ratios, axis=1, keepdims=True)
    dof = int((~np.isnan(log_ratios)).sum()) - log_ratios.shape[0]
    squares = float(np.nansum((log_ratios - means) ** 2))
    return PairNoise(squares / dof if dof else 0.0, dof)


def within_interval(log_ratios: Array, noise: PairNoise, alpha: float) -> Interval:
    """The geometric mean over the rows, with its 1 − alpha t interval for these very prompts.

    Where the noise is unknown, or all there is is one pair, low and high equal the estimate.
    """
    pairs = (~np.isnan(log_ratios)).sum(axis=1)
    estimate = float(np.nanmean(log_ratios, axis=1).mean())
    half = 0.0
    if noise.dof and pairs.sum() > 1:
        error = math.sqrt(noise.variance * float((1 / pairs).sum())) / pairs.size
        half = t_quantile(alpha / 2, noise.dof) * error
    return Interval(ratio_of(estimate), ratio_of(estimate - half), ratio_of(estimate + half))
