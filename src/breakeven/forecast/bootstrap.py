"""Intervals of a forecast: requests are resampled, and the cost's error is drawn with each resample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.compare.student import t_quantile
from breakeven.cost.curve import Z_95
from breakeven.interval import Interval

Floats = NDArray[np.float64]

RESAMPLES = 1000
MOST_BLOCKS = 2000
"""Of requests that are resampled together, where there are more requests than that."""
TAIL = 0.025
"""Beyond each end of an interval."""
SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class Resampler:
    """Percentile bootstrap (Efron 1979) of means over requests, each category resampled for itself.

    n requests of a category are drawn n − 1 times and count n / (n − 1) each, which makes the variance right
    for few of them (Rao and Wu 1988). Categories of one request are resampled together, as one alone shows
    no spread. The same draws serve every setting and concurrency, so that their intervals can be compared.
    """

    block: NDArray[np.int64]
    """Of each request; shape (requests,)."""
    stratum: NDArray[np.int64]
    """Of each request: with which it is resampled; shape (requests,)."""
    weights: Floats
    """How much each resample holds of each block; shape (RESAMPLES, blocks)."""
    z: Floats
    """The cost's error in each resample, in standard errors, of which its low and high are Z_95 away; shape
    (RESAMPLES,)."""

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

    def stretch(self, counted: NDArray[np.bool_]) -> float:
        """By which resampled deviations of a mean over the counted requests are to be multiplied.

        Student's t in place of the normal distribution, with as many degrees of freedom as requests less
        strata, as in the expanded percentile interval (Hesterberg 2015); 1 where nothing shows a spread.
        """
        freedom = int(counted.sum()) - len(np.unique(self.stratum[counted]))
        return t_quantile(TAIL, freedom) / Z_95 if freedom > 0 else 1.0


def resampler(category: NDArray[np.int64]) -> Resampler:
    """For requests of these categories, shape (requests,). A block at the border of two serves both."""
    rng = np.random.default_rng(SEED)
    stratum = _strata(category)
    order = np.argsort(stratum, kind="stable")
    of_block = np.empty(len(stratum), np.int64)
    of_block[order] = np.arange(len(stratum)) * min(len(stratum), MOST_BLOCKS) // len(stratum)
    owner = np.zeros(int(of_block.max()) + 1, np.int64)
    owner[of_block] = stratum
    weights = np.ones((RESAMPLES, len(owner)))
    for name in np.unique(owner):
        mine = np.flatnonzero(owner == name)
        if (n := len(mine)) > 1:
            weights[:, mine] = rng.multinomial(n - 1, np.full(n, 1 / n), RESAMPLES) * (n / (n - 1))
    return Resampler(of_block, stratum, weights, rng.standard_normal(RESAMPLES))


def _strata(category: NDArray[np.int64]) -> NDArray[np.int64]:
    """The category of each request; −1 for all whose category has no other."""
    return np.where(np.bincount(category)[category] > 1, category, -1)


def intervals(estimates: Floats, resampled: Floats) -> list[Interval]:
    """Of logs, as ratios: estimates of shape (columns,), resampled (RESAMPLES, columns). Each estimate lies
    in its interval; a resample that is no number counts for nothing."""
    finite = np.where(np.isfinite(resampled), resampled, np.nan)
    low, high = np.nanpercentile(finite, [100 * TAIL, 100 * (1 - TAIL)], axis=0)
    ends = np.exp([estimates, np.minimum(low, estimates), np.maximum(high, estimates)])
    return [Interval(*column) for column in ends.T.tolist()]
