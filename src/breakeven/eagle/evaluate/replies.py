"""Held-out replies, each with everything that came before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breakeven.eagle.data.samples import Sample, read_samples
from breakeven.errors import UsageError

LEAST_TOKENS = 2
"""Of a reply: the prefill gives its first, and a draft would be of its second."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the target wrote in one turn."""

    id: str
    sample: str
    category: str
    ids: NDArray[np.int32]
    """All tokens up to the end of the reply; those of its sample's states stand at the same places."""
    start: int
    """Where the reply begins in `ids`; 1 or more."""

    @property
    def prompt(self) -> NDArray[np.int32]:
        return self.ids[: self.start]

    @property
    def output(self) -> NDArray[np.int32]:
        return self.ids[self.start :]


def held_out(samples: Path, most: int, max_tokens: int) -> list[Reply]:
    """Replies of the first `most` held-out samples, each cut to `max_tokens`, in the data's order.

    A sample of several turns gives a reply for each. Raises UsageError where none is held out.
    """
    kept = islice((sample for sample in read_samples(samples) if sample.split == "held_out"), most)
    found = [reply for sample in kept for reply in _replies(sample, max_tokens)]
    if not found:
        raise UsageError(
            f"{samples} has no held-out reply of {LEAST_TOKENS} tokens or more: write  held_out = 0.05  or "
            "more under [data] of the recipe, and type  breakeven eagle data RECIPE --fresh"
        )
    return found


def _replies(sample: Sample, max_tokens: int) -> Iterator[Reply]:
    edges = np.flatnonzero(np.diff(sample.loss_mask, prepend=False, append=False))
    for turn, (start, end) in enumerate(edges.reshape(-1, 2).tolist()):
        end = min(end, start + max_tokens)
        if start >= 1 and end - start >= LEAST_TOKENS:
            name = f"{sample.id}/{turn}" if turn else sample.id
            yield Reply(name, sample.id, sample.category, sample.input_ids[:end], start)
