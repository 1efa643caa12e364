"""Surface: a StepCost in tables, so that a compiled loop can ask it for every step that it simulates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from breakeven.cost.step import Step, StepCost

Array = NDArray[np.float64]

ALL_SEQUENCES, ALL_TOKENS = 4, 9
"""Numbers up to which the cost is asked one by one; beyond, at two for each doubling."""


@dataclass(frozen=True, slots=True)
class Surface:
    """A step of s sequences, with m tokens each in the mean and C tokens cached by all of them, takes
    empty_s[s, m − 1] + C · cached_s[s, m − 1] seconds, and for m between whole numbers what lies between.

    Both have the shape (sequences + 1, tokens); no step has the 0 sequences of the first row.
    """

    empty_s: Array
    cached_s: Array

    def scaled(self, by: Array) -> Surface:
        """With every step so many times as long; `by` has the tables' shape."""
        return Surface(self.empty_s * by, self.cached_s * by)


@dataclass(frozen=True, slots=True)
class Surfaces:
    """The estimate, and both ends of the interval of what speculation makes of a plain step.

    All three have the plain steps of the estimate: a speedup is a ratio to the plain steps of as many
    sequences, so an error that a verifying step shares with them cancels.
    """

    estimate: Surface
    low: Surface
    high: Surface


def tabulate(cost: StepCost, sequences: int, tokens: int, context_tokens: float) -> Surfaces:
    """The cost of steps of 1 … `sequences` sequences with 1 … `tokens` tokens each, 2 at least.

    It is asked at some of them, and linear between: a cost a + b·s·m is met exactly. Cached tokens cost as
    much each as they do between an empty cache and one of `context_tokens` for every sequence. Raises what
    the cost raises.
    """
    rows = _nodes(sequences, ALL_SEQUENCES)
    columns = _nodes(max(tokens, 2), ALL_TOKENS)
    context = max(context_tokens, 1.0)
    plain = np.array([[cost.seconds(Step(1, s, context)).estimate] for s in rows])
    ratios = np.array([[_ratio(cost, m, s, context) for m in columns] for s in rows])
    ends = [columns[0], columns[-1]]
    empty = np.array([[cost.seconds(Step(m, s, 0)).estimate for m in ends] for s in rows])

    full_s = _dense(plain * ratios[:, :, 0], rows, columns)
    cached = (plain * ratios[:, [0, -1], 0] - empty) / (np.array(rows)[:, None] * context)
    cached_s = _dense(cached, rows, ends)
    in_cache = np.arange(len(full_s))[:, None] * context
    estimate = Surface(full_s - cached_s * in_cache, cached_s)
    low, high = (_dense(plain * ratios[:, :, end], rows, columns) / full_s for end in (1, 2))
    return Surfaces(estimate, estimate.scaled(low), estimate.scaled(high))


def _ratio(cost: StepCost, tokens: int, sequences: int, context: float) -> tuple[float, float, float]:
    """Estimate, low and high of a step in plain ones."""
    if tokens == 1:
        return 1.0, 1.0, 1.0
    plain = Step(1, sequences, context)
    found = cost.relative(Step(tokens, sequences, context), plain)
    return found.estimate, found.low, found.high


def _nodes(most: int, every: int) -> list[int]:
    """1, 2, 3 … `every`, then 2 and 3 times each power of two, and `most` last."""
    powers = [1 << i for i in range(most.bit_length())]
    found = {*range(1, every + 1), *powers, *(3 * power for power in powers), most}
    return sorted(node for node in found if node <= most)


def _dense(values: ArrayLike, rows: list[int], columns: list[int]) -> Array:
    """Values at these rows and columns as a table of all rows from 0 and columns from 1, linear between."""
    wide = [np.interp(np.arange(1, columns[-1] + 1), columns, row) for row in np.asarray(values)]
    every = np.arange(rows[-1] + 1)
    return np.stack([np.interp(every, rows, column) for column in np.transpose(wide)], axis=1)
