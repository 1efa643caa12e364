"""Scales, ticks and paths for the plots: pure arithmetic, no drawing.

A plot is drawn in a box of 0 to 100 % across and 0 to 100 % down, so that it stretches with the page while
its text keeps its size. Positions here are per cent of the box; y counts downwards, as in SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Tick:
    value: float
    position: float
    """Per cent of the axis."""
    label: str


class Scale(Protocol):
    def __call__(self, value: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Maps [low, high] to [0, 100]; a span of nothing maps to the middle."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        if self.high <= self.low:
            return 50.0
        return _clamped((value - self.low) / (self.high - self.low))

    def ticks(self, about: int = 6) -> list[Tick]:
        step = nice_step((self.high - self.low) / max(about, 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [index * step for index in range(first, last + 1)]
        return [Tick(value, self(value), f"{value:.{_decimals(step)}f}") for value in values]


@dataclass(frozen=True, slots=True)
class Log:
    """Maps [low, high] of ratios to [0, 100], equal ratios to equal distances; low must be above 0."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        if self.high <= self.low:
            return 50.0
        return _clamped(math.log(value / self.low) / math.log(self.high / self.low))

    def ticks(self, about: int = 7) -> list[Tick]:
        """Round ratios, among them 1 if it is in range."""
        if self.high <= self.low:
            return [Tick(self.low, 50.0, f"{self.low:.2f}×")]
        if self.high / self.low > 4:
            values, decimals = _powers(self.low, self.high), 3
        else:
            values, decimals = _from_one(self.low, self.high, about)
        return [Tick(value, self(value), f"{_trimmed(value, decimals)}×") for value in values]


def _from_one(low: float, high: float, about: int) -> tuple[list[float], int]:
    """Round steps counted from 1, so that 1 is a tick, and the decimals they need."""
    step = nice_step((high - low) / max(about, 1))
    first, last = math.ceil((low - 1) / step - 1e-9), math.floor((high - 1) / step + 1e-9)
    return [1 + index * step for index in range(first, last + 1)], _decimals(step)


def _powers(low: float, high: float) -> list[float]:
    every = max(1, math.ceil(math.log2(high / low) / 8))
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    return [2.0**exponent for exponent in range(first, last + 1) if exponent % every == 0]


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _trimmed(value: float, decimals: int) -> str:
    """At least one decimal, so that 1 reads as a ratio."""
    whole, _, fraction = f"{value:.{decimals}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def nice_step(raw: float) -> float:
    """The smallest of 1, 2 or 5 × 10^n that is at least `raw`; 1 where `raw` is not above 0."""
    if not raw > 0 or math.isinf(raw):
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw * (1 - 1e-9))


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """The range of `values` and a margin on both sides; around a single value, a tenth of it."""
    low, high = min(values), max(values)
    margin = (high - low) * share or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def padded_ratio(values: Sequence[float], share: float = 0.08) -> tuple[float, float]:
    """As `padded`, by factors: for ratios on a log axis. Values must be above 0."""
    low, high = min(values), max(values)
    factor = max((high / low) ** share, 1.02)
    return low / factor, high * factor


def ecdf_path(values: Sequence[float], across: Scale) -> str:
    """The share of values at or below x as a stepped path in a box of 1000 × 1000, rising from its floor."""
    ordered = sorted(values)
    parts = ["M0 1000"]
    for rank in _ranks(len(ordered)):
        x, y = across(ordered[rank - 1]) * 10, 1000 - 1000 * rank / len(ordered)
        parts.append(f"H{_short(x)}V{_short(y)}")
    return "".join(parts) + "H1000"


def _ranks(n: int) -> list[int]:
    """Every rank from 1 to n, or as many evenly spread ones as the eye can tell apart, n among them."""
    return sorted({round(n * step / min(n, 1000)) for step in range(1, min(n, 1000) + 1)})


def bars_path(bars: Sequence[tuple[float, float]], across: Scale, up: Scale) -> str:
    """Upright strokes from the floor, one per (x, height), in a box of 1000 × 1000."""
    return "".join(f"M{_short(across(x) * 10)} 1000V{_short(1000 - up(height) * 10)}" for x, height in bars)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _clamped(share: float) -> float:
    """Per cent, kept a box-width within sight so that a wild value cannot make an endless line."""
    return round(min(max(share * 100, -100.0), 200.0), 3)
