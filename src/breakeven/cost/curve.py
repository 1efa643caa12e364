"""Curve: what one decode step takes by the tokens in it, from a baseline's own concurrency curve.

A decode step at concurrency c carries c tokens, as does one that verifies c − 1 drafts of one sequence. So
the step times of a running baseline at several concurrencies tell what verification will cost, without a
restart. The two differ in attention (c caches are read instead of one) and, for a mixture of experts, in that
different sequences share fewer experts than neighbouring tokens of one text do: there the curve is an upper
bound.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.interval import Interval

Array = NDArray[np.float64]

MOST_CONCURRENCY = 256
"""Of a point that is measured: calibration goes no further."""
LEAST_POINTS = 3
"""Two always lie on a line: only a third says anything of how well it holds."""
LEAST_ERROR = 0.005
"""Relative standard error of a point at least: no run repeats better, however narrow its interval."""
Z_95 = 1.959964
"""Half a 95 % interval of a normal distribution, in standard errors."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One measured concurrency. Times are kept to the nanosecond."""

    concurrency: int
    step_s: float
    low_s: float
    high_s: float
    """Of a 95 % interval."""
    n: int
    """Stretches of decoding that `step_s` is the median of."""
    requests: int = 0
    errors: int = 0
    context_tokens: float | None = None
    """Mean length of a sequence half-way through its reply; None where the server does not count prompts."""
    reasons: tuple[str, ...] = ()
    """Why the client does not vouch for the point; empty if it kept up."""
    visits: tuple[CurvePoint, ...] = ()
    """The times that it was measured, of which it is the mean; empty for one of them, or where unknown."""

    def __post_init__(self) -> None:
        for name in ("step_s", "low_s", "high_s"):
            object.__setattr__(self, name, round(getattr(self, name), 9))

    @property
    def error(self) -> float:
        """Relative standard error, LEAST_ERROR at least."""
        return max((self.high_s - self.low_s) / (2 * Z_95 * self.step_s), LEAST_ERROR)


@dataclass(frozen=True, slots=True)
class Line:
    """The straight line a + b·tokens that is nearest to the points, in relative terms."""

    a_s: float
    b_s: float
    residual: float
    """Root mean square of (line / measured − 1)."""
    worst: float
    """The largest of them, with its sign, …"""
    worst_at: int
    """… and the concurrency that has it."""


@dataclass(frozen=True, slots=True)
class Knot:
    """A corner of the fitted curve."""

    tokens: int
    step_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A rising piecewise-linear curve through measured points, with the error it has everywhere.

    No shape is forced on it but that it never falls: isotonic regression (Ayer et al. 1955), weighted by the
    points' errors. Where measured points do fall, a block of them takes its mean, and each one's error covers
    the mean's interval and its own: a kernel can really be slower at one size than at the next.

    Raises UsageError for fewer than LEAST_POINTS points, or none at one token.
    """

    points: tuple[CurvePoint, ...]
    """By concurrency, each once."""
    moe: bool | None = None
    """Whether the model is a mixture of experts, for which the curve is an upper bound; None is unknown."""
    knots: tuple[Knot, ...] = field(init=False)
    line: Line = field(init=False)

    def __post_init__(self) -> None:
        points = tuple(sorted(self.points, key=lambda point: point.concurrency))
        _check(points)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "knots", _knots(points))
        object.__setattr__(self, "line", _line(points))

    def step_seconds(self, tokens: float) -> tuple[float, float, float]:
        """Seconds of a step that carries `tokens`, and the low and high end of its 95 % interval.

        Between two points it is linear. Beyond the last it goes on as between the last two, with an interval
        that opens: its ends take the flattest and the steepest slope that the last two points' intervals and
        the straight line through all points allow. Raises UsageError for less than one token.
        """
        if not tokens >= 1:
            raise UsageError(f"a decode step carries at least one token, not {tokens:g}")
        weights = self._weights(tokens)
        corners = [(weight, self._corner(place)) for place, weight in weights.items()]
        return (
            sum(weight * corner.estimate for weight, corner in corners),
            sum(weight * corner.low for weight, corner in corners),
            sum(weight * corner.high for weight, corner in corners),
        )

    def relative(self, tokens: float, base: float = 1) -> tuple[float, float, float]:
        """A step that carries `tokens` in steps of `base`, with its interval.

        The errors of the corners that the two steps lie between count as independent, and add in quadrature;
        one that both steps share counts by the difference it makes (to first order, as for any ratio). As no
        step takes less time for more tokens, the interval ends at 1.
        """
        if tokens == base:
            return 1.0, 1.0, 1.0
        over, under = self._weights(tokens), self._weights(base)
        step_s, base_s = self.step_seconds(tokens)[0], self.step_seconds(base)[0]
        below = above = 0.0
        for place in over.keys() | under.keys():
            corner = self._corner(place)
            by = over.get(place, 0.0) / step_s - under.get(place, 0.0) / base_s
            ends = by * (corner.low - corner.estimate), by * (corner.high - corner.estimate)
            below, above = math.hypot(below, min(ends)), math.hypot(above, max(ends))
        ratio = step_s / base_s
        low, high = ratio * max(1 - below, 0.0), ratio * (1 + above)
        if tokens > base:
            return ratio, max(low, min(ratio, 1.0)), high
        return ratio, low, min(high, max(ratio, 1.0))

    def falls(self) -> tuple[tuple[CurvePoint, CurvePoint], ...]:
        """Neighbouring points of which the second took less time; empty if the curve only rises."""
        return tuple((a, b) for a, b in pairwise(self.points) if b.step_s < a.step_s)

    def warning(self, tokens: float) -> str | None:
        """What is wrong with asking for that many tokens, or None; and what to type if that mends it."""
        last = self.knots[-1].tokens
        if tokens <= last:
            return None
        said = (
            f"{tokens:g} tokens in a step lie beyond the last measured point ({last}): the curve goes on "
            "along its last slope, with a growing error"
        )
        if last >= MOST_CONCURRENCY:
            return said
        further = min(math.ceil(tokens), MOST_CONCURRENCY)
        return f"{said}; type  breakeven calibrate URL --max-concurrency {further}"

    def warnings(self) -> tuple[str, ...]:
        """What qualifies every figure that is made from the curve, each a sentence."""
        falls = self.falls()
        explained = [fall for fall in falls if _explained(*fall)]
        beyond = tuple(_fall(a, b) for a, b in falls if not _explained(a, b))
        return (*beyond, _small_falls(explained)) if explained else beyond

    def _weights(self, tokens: float) -> dict[int, float]:
        """What the seconds of a step are a sum of: knots by their place, and after them the last slope."""
        further = tokens - self.knots[-1].tokens
        if further > 0:
            return {len(self.knots) - 1: 1.0, len(self.knots): further}
        above = max(bisect_left(self.knots, tokens, key=lambda knot: knot.tokens), 1)
        a, b = self.knots[above - 1], self.knots[above]
        share = (tokens - a.tokens) / (b.tokens - a.tokens)
        return {above - 1: 1 - share, above: share}

    def _corner(self, place: int) -> Interval:
        """Seconds of a knot, or of the slope for each token beyond the last."""
        if place == len(self.knots):
            return self._last_slope()
        knot = self.knots[place]
        return Interval(knot.step_s, knot.low_s, knot.high_s)

    def _last_slope(self) -> Interval:
        before, last = self.knots[-2:]
        width = last.tokens - before.tokens
        slope = (last.step_s - before.step_s) / width
        slopes = slope, max(self.line.b_s, 0.0)
        least = min(*slopes, max(last.low_s - before.high_s, 0.0) / width)
        most = max(*slopes, (last.high_s - before.low_s) / width)
        return Interval(slope, least, most)


def _check(points: Sequence[CurvePoint]) -> None:
    if len(points) < LEAST_POINTS:
        raise UsageError(
            f"{len(points)} measured point{'' if len(points) == 1 else 's'} cannot show a curve, it needs "
            f"{LEAST_POINTS}: type  breakeven calibrate URL --max-concurrency 4  or more"
        )
    if points[0].concurrency != 1:
        raise UsageError(
            f"the curve has no point at concurrency 1, its first is {points[0].concurrency}: "
            "type  breakeven calibrate URL"
        )
    for a, b in pairwise(points):
        if a.concurrency == b.concurrency:
            raise UsageError(f"the curve has two points at concurrency {a.concurrency}: leave one out")


def _knots(points: Sequence[CurvePoint]) -> tuple[Knot, ...]:
    """Pool adjacent violators: a block's value is the mean of its points, weighted by 1 / variance."""
    blocks: list[list[CurvePoint]] = []
    for point in points:
        blocks.append([point])
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1].extend(last)
    return tuple(_knot(point, block) for block in blocks for point in block)


def _mean(block: Sequence[CurvePoint]) -> float:
    weights = [(point.error * point.step_s) ** -2 for point in block]
    steps = [point.step_s for point in block]
    return float(np.average(steps, weights=weights))


def _knot(point: CurvePoint, block: Sequence[CurvePoint]) -> Knot:
    step_s = _mean(block)
    least = Z_95 * LEAST_ERROR
    half_s = Z_95 * sum((one.error * one.step_s) ** -2 for one in block) ** -0.5
    low_s = min(point.low_s, point.step_s * (1 - least), step_s - half_s)
    high_s = max(point.high_s, point.step_s * (1 + least), step_s + half_s)
    return Knot(point.concurrency, step_s, low_s, high_s)


def _line(points: Sequence[CurvePoint]) -> Line:
    """Least squares of (a + b·c) / step − 1."""
    tokens = np.array([point.concurrency for point in points], dtype=np.float64)
    steps_s = np.array([point.step_s for point in points])
    sides: Array = np.stack([np.ones_like(tokens), tokens], axis=1) / steps_s[:, None]
    a_s, b_s = np.linalg.lstsq(sides, np.ones_like(tokens), rcond=None)[0]
    off: Array = (a_s + b_s * tokens) / steps_s - 1
    worst = int(np.argmax(np.abs(off)))
    residual = float(np.sqrt(np.mean(off**2)))
    return Line(float(a_s), float(b_s), residual, float(off[worst]), points[worst].concurrency)


def _explained(a: CurvePoint, b: CurvePoint) -> bool:
    """Whether the intervals of two points meet though the second is the lower."""
    half = Z_95 * LEAST_ERROR
    return max(b.high_s, b.step_s * (1 + half)) >= min(a.low_s, a.step_s * (1 - half))


def _fall(a: CurvePoint, b: CurvePoint) -> str:
    return (
        f"the curve is not monotone: a step took {a.step_s * 1e3:.4g} ms with {a.concurrency} in flight and "
        f"{b.step_s * 1e3:.4g} ms with {b.concurrency}, more than their intervals explain: kernels can be "
        "slower at one size, or other traffic was there; it is fitted level, with the larger error"
    )


def _small_falls(falls: Sequence[tuple[CurvePoint, CurvePoint]]) -> str:
    where = ", ".join(f"{a.concurrency} to {b.concurrency}" for a, b in falls)
    return (
        f"the curve is not monotone from {where}: their intervals explain it; it is fitted level there, with "
        "the larger error"
    )
