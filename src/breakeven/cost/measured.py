"""Step cost read off a server's own concurrency curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.cost.curve import Curve
from breakeven.cost.step import Source, Step
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class Measured:
    """A step of s sequences × m tokens costs what the curve says of s·m tokens."""

    curve: Curve
    moe: bool | None
    """None: not known."""
    source: Source = field(default="measured", init=False)

    def seconds(self, step: Step) -> Interval:
        raise NotImplementedError

    def relative(self, step: Step, base: Step) -> Interval:
        raise NotImplementedError

    def parts(self, step: Step) -> Mapping[str, float]:
        raise NotImplementedError

    def warnings(self, step: Step) -> tuple[str, ...]:
        raise NotImplementedError
