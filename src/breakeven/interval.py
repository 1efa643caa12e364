"""An estimate between two bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval in which the truth is expected, at the level that its owner names."""

    estimate: float
    low: float
    high: float
