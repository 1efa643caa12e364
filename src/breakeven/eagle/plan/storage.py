"""Hidden states on disk: what a token, a sample and the whole take, and what a disk holds."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.cost.geometry import ACTIVATION_BYTES
from breakeven.eagle.layers import AUX
from breakeven.eagle.plan.asked import Data
from breakeven.eagle.plan.ranges import exactly, product, quotient
from breakeven.interval import Interval

STATES = AUX + 1
"""Of each token: three layers', and the last one, which the target's own probabilities are made from."""


@dataclass(frozen=True, slots=True)
class Storage:
    """In bytes. Token ids and the target's top probabilities are not counted: under 1 %."""

    per_token: int
    """4 × hidden × 2."""
    per_sample: Interval
    whole: Interval
    """Offline: all samples. Online only what is in flight."""
    samples_that_fit: Interval | None
    """On the disk of the budget; None where its size was not said."""


def storage_of(hidden: int, data: Data, disk_bytes: int | None) -> Storage:
    """tokens × 4 × hidden × 2 bytes."""
    per_token = STATES * hidden * ACTIVATION_BYTES
    per_sample = product(exactly(per_token), data.tokens_per_sample)
    fits = None if disk_bytes is None else quotient(exactly(disk_bytes), per_sample)
    return Storage(per_token, per_sample, product(exactly(data.samples), per_sample), fits)
