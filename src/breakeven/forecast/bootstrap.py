"""Intervals of a forecast: requests are resampled, and the cost's error is drawn with each resample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.interval import Interval

Floats = NDArray[np.float64]

RESAMPLES = 1000
MOST_BLOCKS = 2000
"""Of requests that are resampled together, where there are more requests than that."""
CONFIDENCE = 0.95
Z_95 = 1.959964
"""Half a 95 % interval of a normal distribution, in standard errors: what low and high of a cost are."""
SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class Resampler:
    """Percentile bootstrap (Efron 1979) of means over requests, each category resampled for itself.

    The same draws serve every setting and concurrency, so that their intervals can be compared.
    """

    block: NDArray[np.int64]
    """Of each request; shape (requests,)."""
    weights: Floats
    """How often each resample holds each block; shape (RESAMPLES, blocks)."""
    z: Floats
    """The cost's error in each resample, in standard errors; shape (RESAMPLES,)."""

    def means(self, values: Floats | NDArray[np.int64], counted: NDArray[np.bool_]) -> Floats:
        """Resampled means over the counted requests of `values`, shape (requests, columns).

        Shape (RESAMPLES, columns); not a number where a resample holds none of them.
        """
        block = self.block[counted]
        sizes = np.bincount(block, minlength=self.weights.shape[1])
        sums = np.zeros((len(sizes), values.shape[1]))
        np.add.at(sums, block, values[counted])
        with np.errstate(invalid="ignore"):
            means: Floats = (self.weights @ sums) / (self.weights @ sizes)[:, None]
        return means


def resampler(category: NDArray[np.int64]) -> Resampler:
    """For requests of these categories, shape (requests,). A block at the border of two serves both."""
    rng = np.random.default_rng(SEED)
    order = np.argsort(category, kind="stable")
    of_block = np.empty(len(category), np.int64)
    of_block[order] = np.arange(len(category)) * min(len(category), MOST_BLOCKS) // len(category)
    blocks = int(of_block.max()) + 1
    owner = np.zeros(blocks, np.int64)
    owner[of_block] = category
    weights = np.zeros((RESAMPLES, blocks))
    for name in np.unique(owner):
        mine = np.flatnonzero(owner == name)
        weights[:, mine] = rng.multinomial(len(mine), np.full(len(mine), 1 / len(mine)), RESAMPLES)
    return Resampler(of_block, weights, rng.standard_normal(RESAMPLES))


def intervals(estimates: Floats, resampled: Floats) -> list[Interval]:
    """Of logs, as ratios: estimates of shape (columns,), resampled (RESAMPLES, columns). Each estimate lies
    in its interval; a resample that is no number counts for nothing."""
    tail = 50 * (1 - CONFIDENCE)
    finite = np.where(np.isfinite(resampled), resampled, np.nan)
    low, high = np.nanpercentile(finite, [tail, 100 - tail], axis=0)
    ends = np.exp([estimates, np.minimum(low, estimates), np.maximum(high, estimates)])
    return [Interval(*column) for column in ends.T.tolist()]
