"""Acceptance: what a replay counted over some requests. Records add up; ratios are made from the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.counters import SpecCounters

DECILES = 10


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Counts over some requests."""

    requests: int
    output_tokens: int
    """Tokens of all outputs, the first of each included."""
    emitted_tokens: int
    """Output tokens that came out of decode steps; without each first one where the prefill gives it."""
    histogram: NDArray[np.int64]
    """Rows (drafted, accepted, steps): how many steps drafted so many tokens and had so many accepted; 0
    drafted is no draft. Each pair once, in order; shape (pairs, 3)."""
    deciles: NDArray[np.int64]
    """Shape (10, 4): steps, drafts, drafted, accepted tokens of the steps begun in each tenth of outputs."""
    parts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """`reasoning` and `answer`, where the record tells them apart: the same four counts, shape (4,)."""

    def __add__(self, other: Acceptance) -> Acceptance:
        names = [*self.parts, *(name for name in other.parts if name not in self.parts)]
        none = np.zeros(4, np.int64)
        return Acceptance(
            self.requests + other.requests,
            self.output_tokens + other.output_tokens,
            self.emitted_tokens + other.emitted_tokens,
            joined(np.concatenate([self.histogram, other.histogram])),
            self.deciles + other.deciles,
            {name: self.parts.get(name, none) + other.parts.get(name, none) for name in names},
        )

    @property
    def counters(self) -> SpecCounters:
        """The counts as every other source gives them."""
        return counters_of(self.histogram)

    @property
    def tokens_per_step(self) -> float | None:
        """Emitted / all steps, or None. A last step whose draft ends the record adds no token of its own."""
        steps = self.counters.steps
        return self.emitted_tokens / steps if steps else None


def counters_of(histogram: NDArray[np.int64]) -> SpecCounters:
    """The counts that rows (drafted, accepted, steps) add up to."""
    drafted, accepted, steps = histogram.T
    return SpecCounters(
        steps=int(steps.sum()),
        drafts=int(steps[drafted > 0].sum()),
        drafted_tokens=int(drafted @ steps),
        accepted_tokens=int(accepted @ steps),
        accepted_per_position=per_position(np.bincount(accepted, steps).astype(np.int64)),
        source="replay",
    )


def per_position(by_accepted: NDArray[np.int64]) -> tuple[int, ...]:
    """Steps with 1 token accepted or more, 2 or more, …; by_accepted[n] counts those with exactly n."""
    return tuple(by_accepted[::-1].cumsum()[::-1][1:].tolist())


def joined(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows (drafted, accepted, steps) with the steps of equal pairs added up, in order."""
    pairs, index = np.unique(rows[:, :2], axis=0, return_inverse=True)
    steps = np.bincount(index.ravel(), rows[:, 2], len(pairs)).astype(np.int64)
    return np.column_stack([pairs, steps])


def nothing() -> Acceptance:
    """What no request adds up to."""
    return Acceptance(0, 0, 0, np.zeros((0, 3), np.int64), np.zeros((DECILES, 4), np.int64))
