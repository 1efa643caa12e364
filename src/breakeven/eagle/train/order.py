"""Which documents an optimizer step sees: it follows from seed and step, so that one can go on anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Order:
    """Every epoch is a permutation of its own, cut into batches; the last of an epoch may be smaller."""

    documents: int
    batch: int
    epochs: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.documents / self.batch)

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    def epoch(self, done: int) -> int:
        """Of the next step, from 0, after `done` steps."""
        return done // self.steps_per_epoch

    def batch_after(self, done: int) -> list[int]:
        """Places of the documents of the next step, after `done` steps."""
        epoch, batch = divmod(done, self.steps_per_epoch)
        order = _permutation(self.documents, self.seed, epoch)
        found: list[int] = order[batch * self.batch : (batch + 1) * self.batch].tolist()
        return found

    def dealt_after(self, done: int, rank: int, processes: int) -> list[int]:
        """Those of the next step that fall to one of several processes."""
        return self.batch_after(done)[rank::processes]

    def stream(self, done: int, rank: int, processes: int) -> Iterator[int]:
        """Those of all steps after `done` that fall to one of several processes."""
        for step in range(done, self.steps):
            yield from self.dealt_after(step, rank, processes)


@lru_cache(maxsize=2)
def _permutation(documents: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, epoch]).permutation(documents)
