"""The plot of a simulated guard: what it gains, and its worst request, by ε."""

from __future__ import annotations

import math
from collections.abc import Sequence

from breakeven.guard.simulate.records import Played, Simulation
from breakeven.interval import Interval
from breakeven.report.curves import Chart, Points, chart
from breakeven.report.guard_words import epsilon_words, times
from breakeven.report.svg import Linear, Log, padded_ratio

GUARD, WORST = "guard, mean over requests", "guard, worst request"
FREE, FREE_WORST = "without a ledger", "without a ledger, worst request"
BEST_FIXED, FIXED_WORST = "best fixed in hindsight", "best fixed in hindsight, worst request"


def gain_by_epsilon(made: Simulation) -> Chart | None:
    """Dashed, as they do not depend on ε: the guard without a ledger, and the best fixed setting. None where
    no ε was asked for."""
    finite = sorted(
        ((one.epsilon, one.guard) for one in made.by_epsilon if not math.isinf(one.epsilon)),
        key=lambda one: one[0],
    )
    if not finite:
        return None
    lines = [_mean(finite), _worst(finite), *_level_lines(made, finite[0][0], finite[-1][0])]
    values = [value.estimate for points in lines for _, value in points.values]
    low, high = finite[0][0] * 100, finite[-1][0] * 100
    margin = 0.04 * (high - low) or 0.1
    return chart(
        "ε, per cent",
        Linear(low - margin, high + margin),
        Log(*padded_ratio([1.0, *values])),
        lines,
        [(1.0, "no speculation")],
        "; ".join(text for points in lines for text in points.texts[:: max(len(points.texts) - 1, 1)]),
    )


def _mean(finite: Sequence[tuple[float, Played]]) -> Points:
    found = [(epsilon, one.speed.speedup) for epsilon, one in finite]
    return _points(GUARD, found)


def _worst(finite: Sequence[tuple[float, Played]]) -> Points:
    found = [(epsilon, one.speed.worst.speedup) for epsilon, one in finite]
    return _points(WORST, found)


def _level_lines(made: Simulation, low: float, high: float) -> list[Points]:
    """What has one value for every ε."""
    free = next((one.guard for one in made.by_epsilon if math.isinf(one.epsilon)), None)
    levels = [(FREE, FREE_WORST, free), (BEST_FIXED, FIXED_WORST, made.best_fixed)]
    return [
        _points(name, [(low, value), (high, value)], bound=True)
        for of_mean, of_worst, one in levels
        if one is not None
        for name, value in ((of_mean, one.speed.speedup), (of_worst, one.speed.worst.speedup))
    ]


def _points(name: str, found: Sequence[tuple[float, float]], bound: bool = False) -> Points:
    texts = tuple(
        f"{name}: {times(value)}" if bound else f"{name}, ε = {epsilon_words(epsilon)}: {times(value)}"
        for epsilon, value in found
    )
    values = tuple((epsilon * 100, Interval(value, value, value)) for epsilon, value in found)
    return Points(name, values, texts, bound)
