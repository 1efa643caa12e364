"""How many bits a weight takes, its share of the scales counted, for each part of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from breakeven.cost.checks import check_sizes
from breakeven.errors import UsageError

MOST_BITS = 64


@dataclass(frozen=True, slots=True)
class Precision:
    """Of one kind of weight. Raises UsageError for bits that no weight can have."""

    bits: float
    """Of the weight itself; a mean where several formats are mixed."""
    group: int | None = None
    """Weights that share one scale; None where scales are too few to count (per tensor or channel)."""
    scale_bits: float = 0
    """Bits stored for each group: its scale, and its zero point if it has one."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bits) and 0 < self.bits <= MOST_BITS):
            raise UsageError(f"impossible geometry: {self.bits} bits per weight")
        if not 0 <= self.scale_bits <= MOST_BITS:
            raise UsageError(f"impossible geometry: scales of {self.scale_bits} bits")
        check_sizes(self)
        if self.scale_bits and self.group is None:
            raise UsageError("impossible geometry: scale_bits without the group that shares them")

    @property
    def bits_per_weight(self) -> float:
        """bits + scale_bits / group, in bits."""
        return self.bits + (self.scale_bits / self.group if self.group else 0)


BF16 = Precision(16)


@dataclass(frozen=True, slots=True)
class Precisions:
    """Of each part of a model."""

    attention: Precision = BF16
    dense: Precision = BF16
    """Feed-forward blocks without experts."""
    routed: Precision = BF16
    """Experts that a router chooses."""
    shared: Precision = BF16
    """Experts that every token uses."""
    embedding: Precision = BF16
    output: Precision = BF16
    """The output head, where it is not the embedding table."""
    other: Precision = BF16
    """Routers and norms."""

    def of(self, part: str) -> Precision:
        """By the part's name, one of PARTS."""
        found: Precision = getattr(self, part)
        return found


ALL_BF16 = Precisions()
PARTS = tuple(field.name for field in fields(Precisions))
