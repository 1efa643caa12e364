"""Step cost from one measured step and what a model adds to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from breakeven.cost.modelled import Modelled
from breakeven.cost.step import PLAIN_STEP, Source, Step
from breakeven.errors import UsageError
from breakeven.interval import Interval

INCREMENT_ERROR = 0.5
"""Relative, of what a step costs beyond the anchor. Assumed, for want of a measurement: other kernels reach
other efficiencies, and some arithmetic hides behind reading."""


@dataclass(frozen=True, slots=True)
class Anchored:
    """The measured seconds of the step `at`, plus modelled increments to any other.

    What the measurement takes beyond the model is kept as a flat `rest`. Where it takes less, the device is
    faster than modelled, and every part shrinks alike; so a step never costs less than nothing.
    """

    modelled: Modelled
    measured_s: float
    at: Step = PLAIN_STEP
    """What was measured: a plain decode step as a rule."""
    source: Source = field(default="anchored", init=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.measured_s) and self.measured_s > 0):
            raise UsageError(f"a measured step of {self.measured_s} s: give its seconds, above 0")

    def seconds(self, step: Step) -> Interval:
        """Exact at the anchor; beyond it the increment is known to INCREMENT_ERROR, and to what the range of
        reuse of experts leaves open."""
        best = sum(self.parts(step).values())
        most_reuse, least_reuse = (
            Anchored(m, self.measured_s, self.at) for m in self.modelled.with_reuse_range()
        )
        ends = [
            self.measured_s + (sum(cost.parts(step).values()) - self.measured_s) * factor
            for cost in (most_reuse, least_reuse)
            for factor in (1 - INCREMENT_ERROR, 1 + INCREMENT_ERROR)
        ]
        return Interval(best, max(min(ends), 0.0), max(ends))

    def parts(self, step: Step) -> dict[str, float]:
        """Seconds of each modelled part, and the `rest` that the model does not explain."""
        at_anchor = sum(self.modelled.parts(self.at).values())
        scale = min(1.0, self.measured_s / at_anchor)
        parts = {name: scale * s for name, s in self.modelled.parts(step).items()}
        return {**parts, "rest": self.measured_s - scale * at_anchor}
