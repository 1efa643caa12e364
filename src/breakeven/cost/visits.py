"""Visits: a point of the curve out of all times that its concurrency was measured.

The scatter within a visit does not show that the machine was slower at one concurrency than at the next, as
its load changed meanwhile. A second visit at another time does. The model is one-way random effects, in
logarithms, as a load makes steps longer by a factor:

    log(a visit's step) = log(the step at that concurrency) + machine at that time + scatter within the visit

with one variance of the machine for all concurrencies, estimated from all those visited more than once: a
pooled variance (JCGM 100:2008, GUM, 4.2.4 and H.5), from which that of the scatter is taken off. A point is
the median of its visits, so that one of several that met a busy machine counts no more than any other. The
variance of its error is that of their scatter and that of the machine over the number of visits; the latter
is estimated on few degrees of freedom, hence Student's t (GUM, G.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.compare.student import t_quantile
from breakeven.cost.curve import LEAST_ERROR, Z_95, CurvePoint
from breakeven.units import change

TAIL = 0.025
"""On either side of a 95 % interval."""
QUIET_WINDOW = (
    "the machine or its load changed while measuring, and the intervals are wider for it: calibrate again in "
    "a quiet window"
)
NEVER_TWICE = (
    "no concurrency was measured twice, so the intervals do not hold how the machine or its load changed "
    "from one to the next: let a calibration come to its end"
)

MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median / that of a mean, of many normal values; of three it is 1.16."""

Visits = tuple[CurvePoint, ...]
"""Of one concurrency, in the order of time, each a point with the scatter of its own stretches alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """How the machine differed from visit to visit, beyond the scatter within them."""

    deviation: float
    """Standard deviation of the logarithm of a step: about that of the step, relative to it."""
    dof: int
    """Visits beyond the first of each concurrency."""

    @property
    def half(self) -> float:
        """Half a 95 % interval for one visit, as a logarithm."""
        return self.deviation * t_quantile(TAIL, self.dof)


def with_visit(points: Sequence[CurvePoint], visit: CurvePoint) -> tuple[CurvePoint, ...]:
    """All points by concurrency, with one more visit; it changes every point's interval."""
    visits = {point.concurrency: point.visits for point in points}
    visits[visit.concurrency] = (*visits.get(visit.concurrency, ()), visit)
    groups = [visits[concurrency] for concurrency in sorted(visits)]
    between = _change(groups)
    return tuple(_pooled(group, between) for group in groups)


def change_between(points: Sequence[CurvePoint]) -> Change | None:
    """What the visits of all points tell of the machine; None where none has two."""
    return _change([point.visits for point in points])


def visit_warnings(points: Sequence[CurvePoint]) -> tuple[str, ...]:
    """What the visits say of all figures, each a sentence. Points that know of no visits say nothing."""
    changed = [f"{point.concurrency} ({_off(point.visits)})" for point in differing(points)]
    if changed:
        said = f"visits differ by more than their scatter explains, at concurrency {', '.join(changed)}"
        return (f"{said}: {QUIET_WINDOW}",)
    once = any(point.visits for point in points) and change_between(points) is None
    return (NEVER_TWICE,) if once else ()


def differing(points: Sequence[CurvePoint]) -> tuple[CurvePoint, ...]:
    """Those whose visits differ by more than their scatter explains."""
    return tuple(point for point in points if _differ(point.visits))


def _change(groups: Sequence[Visits]) -> Change | None:
    """Each concurrency's own scatter is taken off its own visits' variance, which is then 0 at least: one
    that scatters much must not hide what the others show. With a steady machine that is a little too wide.
    """
    several = [group for group in groups if len(group) > 1]
    if not several:
        return None
    dof = sum(len(group) - 1 for group in several)
    return Change(math.sqrt(sum(map(_between, several)) / dof), dof)


def _between(visits: Visits) -> float:
    """The sum of squares that scatter does not explain."""
    expected = (len(visits) - 1) * np.mean([_error(visit) ** 2 for visit in visits])
    return max(float(len(visits) * np.var(_logs(visits)) - expected), 0.0)


def _pooled(visits: Visits, between: Change | None) -> CurvePoint:
    step_s = math.exp(float(np.median(_logs(visits))))
    wider = MEDIAN if len(visits) > 2 else 1.0
    machine = wider * between.half / math.sqrt(len(visits)) if between else 0.0
    reasons = tuple(dict.fromkeys(reason for visit in visits for reason in visit.reasons))
    sides = [_sides(visit) for visit in visits]
    scatter = (wider * _mean(side, bool(reasons)) for side in zip(*sides, strict=True))
    below, above = (math.hypot(half, machine) for half in scatter)
    contexts = [visit.context_tokens for visit in visits if visit.context_tokens is not None]
    return replace(
        visits[0],
        step_s=step_s,
        low_s=step_s * math.exp(-below),
        high_s=step_s * math.exp(above),
        n=sum(visit.n for visit in visits),
        requests=sum(visit.requests for visit in visits),
        errors=sum(visit.errors for visit in visits),
        context_tokens=float(np.mean(contexts)) if contexts else None,
        reasons=reasons,
        visits=visits,
    )


def _mean(halves: Sequence[float], doubtful: bool) -> float:
    """Half the interval of a mean. A client that is not vouched for may be off to the same side each time."""
    return sum(halves) / len(halves) if doubtful else math.hypot(*halves) / len(halves)


def _logs(visits: Visits) -> list[float]:
    return [math.log(visit.step_s) for visit in visits]


def _sides(visit: CurvePoint) -> tuple[float, float]:
    """How far the interval of a visit reaches below and above, as logarithms."""
    return math.log(visit.step_s / visit.low_s), math.log(visit.high_s / visit.step_s)


def _error(visit: CurvePoint) -> float:
    """Standard error of the logarithm, by the scatter within the visit."""
    return sum(_sides(visit)) / (2 * Z_95)


def _differ(visits: Visits) -> bool:
    """Whether the intervals of two visits do not meet: for even ones about 1 in 180 by chance."""
    least = Z_95 * LEAST_ERROR
    lows = [min(visit.low_s, visit.step_s * (1 - least)) for visit in visits]
    highs = [max(visit.high_s, visit.step_s * (1 + least)) for visit in visits]
    return len(visits) > 1 and max(lows) > min(highs)


def _off(visits: Visits) -> str:
    """The slowest against the fastest, below 0 where the fastest came later."""
    fastest, *_, slowest = sorted(visits, key=lambda visit: visit.step_s)
    later = visits.index(slowest) > visits.index(fastest)
    return change(slowest.step_s / fastest.step_s if later else fastest.step_s / slowest.step_s)
