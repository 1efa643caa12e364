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
    """Counts over some requests. Arrays grow to the larger shape when two records are added."""

    requests: int
    output_tokens: int
    """Tokens of all outputs, the first of each included."""
    emitted_tokens: int
    """Output tokens that came out of decode steps; without each first one where the prefill gives it."""
    histogram: NDArray[np.int64]
    """histogram[d, a] counts the steps that drafted d tokens of which a were accepted; d = 0 is no draft."""
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
            _add_grown(self.histogram, other.histogram),
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
    """The counts that a histogram of steps by drafted and accepted tokens adds up to."""
    by_draft, by_accepted = histogram.sum(axis=1), histogram.sum(axis=0)
    at_least = by_accepted[::-1].cumsum()[::-1]
    return SpecCounters(
        steps=int(by_draft.sum()),
        drafts=int(by_draft[1:].sum()),
        drafted_tokens=int(by_draft @ np.arange(len(by_draft))),
        accepted_tokens=int(by_accepted @ np.arange(len(by_accepted))),
        accepted_per_position=tuple(at_least[1:].tolist()),
        source="replay",
    )


def nothing() -> Acceptance:
    """What no request adds up to."""
    return Acceptance(0, 0, 0, np.zeros((1, 1), np.int64), np.zeros((DECILES, 4), np.int64))


def _add_grown(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    total = np.zeros((max(a.shape[0], b.shape[0]), max(a.shape[1], b.shape[1])), np.int64)
    total[: a.shape[0], : a.shape[1]] += a
    total[: b.shape[0], : b.shape[1]] += b
    return total
