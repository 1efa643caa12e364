"""Which samples are in which shard, and which pass through the target together: from their lengths alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Shard:
    """Samples that stand next to each other in the data, and end up in one file."""

    number: int
    samples: range
    """Their numbers in the data."""

    @property
    def file(self) -> str:
        return f"shard-{self.number:05d}.safetensors"


def plan_shards(lengths: NDArray[np.int64], tokens: int) -> list[Shard]:
    """All samples in their order; a shard ends with the sample that brings it to `tokens`."""
    shards: list[Shard] = []
    begin = held = 0
    for sample, length in enumerate(lengths.tolist()):
        held += length
        if held >= tokens or sample == len(lengths) - 1:
            shards.append(Shard(len(shards), range(begin, sample + 1)))
            begin, held = sample + 1, 0
    return shards


def batches(lengths: NDArray[np.int64], samples: Sequence[int], size: int) -> list[list[int]]:
    """Those samples by `size`, ones of like length together so that little is padded."""
    ordered = sorted(samples, key=lambda sample: (int(lengths[sample]), sample))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]
