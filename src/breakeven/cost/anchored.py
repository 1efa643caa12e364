"""Step cost from one measured step and what a model adds to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from breakeven.cost.modelled import INCREMENT_ERROR, Modelled, at_least_as_wide, grown
from breakeven.cost.step import PLAIN_STEP, Source, Step
from breakeven.errors import UsageError
from breakeven.interval import Interval

FACTORS = (1 - INCREMENT_ERROR, 1 + INCREMENT_ERROR)


@dataclass(frozen=True)
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
        best = self._best_s(step)
        ends = [best, *self._ends_s(step)]
        return Interval(best, min(ends), max(ends))

    def relative(self, step: Step, base: Step) -> Interval:
        """With both steps at one common end of the errors that `seconds` has; PREDICTION_ERROR at least."""
        best = self._best_s(step) / self._best_s(base)
        both = zip(self._ends_s(step), self._ends_s(base), strict=True)
        ends = [best, *(step_s / base_s for step_s, base_s in both)]
        return at_least_as_wide(Interval(best, min(ends), max(ends)))

    def parts(self, step: Step) -> dict[str, float]:
        """Seconds of each modelled part, and the `rest` that the model does not explain."""
        parts = {name: self._scale * s for name, s in self.modelled.parts(step).items()}
        return {**parts, "rest": self._rest_s}

    def warnings(self, step: Step) -> tuple[str, ...]:
        """Of the model, which the increments come from."""
        return self.modelled.warnings(step)

    def _ends_s(self, step: Step) -> Iterator[float]:
        for end in self._ends:
            ratio = end._best_s(step) / self.measured_s
            yield from (self.measured_s * grown(ratio, factor) for factor in FACTORS)

    def _best_s(self, step: Step) -> float:
        return self._scale * self.modelled.total_s(step) + self._rest_s

    @cached_property
    def _ends(self) -> tuple[Anchored, ...]:
        return tuple(replace(self, modelled=model) for model in self.modelled.reuse_ends)

    @cached_property
    def _at_s(self) -> float:
        return self.modelled.total_s(self.at)

    @cached_property
    def _scale(self) -> float:
        return min(1.0, self.measured_s / self._at_s)

    @cached_property
    def _rest_s(self) -> float:
        return self.measured_s - self._scale * self._at_s
