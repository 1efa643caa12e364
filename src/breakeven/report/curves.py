"""Line charts with bands: estimates against a setting, as positions. Pure arithmetic; a template draws them.

Positions are per cent of the box and count downwards; paths are in a box of 1000 × 1000.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from breakeven.interval import Interval
from breakeven.report.plots import Dot
from breakeven.report.svg import Linear, Log, Tick

COLOURS = 8
"""Classes c0 … c7 of the style sheet; later lines have hollow dots."""
LABEL_GAP = 5.5
"""Per cent of the height between labels at the ends of lines, so that they do not touch."""
NEARLY_0 = 1e-9
TICK_GAP = 2.5
"""Per cent of the width between ticks that are labelled."""


@dataclass(frozen=True, slots=True)
class Points:
    """One line to be drawn: what it is, and its values from left to right."""

    name: str
    values: tuple[tuple[float, Interval], ...]
    texts: tuple[str, ...]
    """Of each value, said where the pointer rests on it."""
    bound: bool = False
    """A bound or a reference and no estimate: dashed, without band, and cut where it leaves the plot."""


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    label: str
    """At the line's end: its number in the legend."""
    colour: int
    hollow: bool
    dashed: bool
    path: str
    band: str
    """Closed path around the intervals; empty where there are none to show."""
    dots: tuple[Dot, ...]
    whiskers: tuple[tuple[float, float, float], ...]
    """x, and y of both ends, of the interval of a single point, which has no band."""
    end: tuple[float, float]
    """Where the label stands."""


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line across the whole plot."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    across_name: str
    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
    levels: tuple[Level, ...]
    lines: tuple[Line, ...]
    text: str
    """The plot in words."""


def chart(
    across_name: str,
    across: Linear | Log,
    up: Linear | Log,
    lines: Sequence[Points],
    levels: Sequence[tuple[float, str]],
    text: str,
) -> Chart:
    """`levels` are values and their labels. Ticks across stand at the lines' own values."""
    made = [_line(place, points, across, up) for place, points in enumerate(lines)]
    return Chart(
        across_name,
        _ticks(sorted({x for points in lines for x, _ in points.values}), across),
        tuple(Tick(tick.value, 100 - tick.position, tick.label) for tick in up.ticks(5)),
        tuple(Level(_down(up, value), label) for value, label in levels),
        tuple(_labels_apart(made)),
        text,
    )


def _ticks(values: Iterable[float], across: Linear | Log) -> tuple[Tick, ...]:
    shown: list[Tick] = []
    for value in values:
        position = across(value)
        if not shown or position - shown[-1].position >= TICK_GAP:
            shown.append(Tick(value, position, f"{value:g}"))
    return tuple(shown)


def _line(place: int, points: Points, across: Linear | Log, up: Linear | Log) -> Line:
    trace = [(x, value.estimate) for x, value in points.values]
    trace = _cut(trace, up) if points.bound else trace
    drawn = [(across(x), _down(up, y)) for x, y in trace]
    alone = len(drawn) == 1 and not points.bound
    dots = zip(drawn, trace, points.texts, strict=False)
    return Line(
        points.name,
        f"{place + 1}",
        place % COLOURS,
        place >= COLOURS,
        points.bound,
        _path(drawn),
        "" if points.bound or alone else _band(points, across, up),
        tuple(Dot(x, y, text) for (x, y), (_, value), text in dots if value < up.high),
        tuple((across(x), _down(up, i.low), _down(up, i.high)) for x, i in points.values) if alone else (),
        drawn[-1] if drawn else (0.0, 0.0),
    )


def _down(up: Linear | Log, value: float) -> float:
    """Per cent from the top; a bound of 0 is far below the plot, also on a log axis."""
    return 100 - up(max(value, NEARLY_0))


def _cut(trace: list[tuple[float, float]], up: Linear | Log) -> list[tuple[float, float]]:
    """Up to where it leaves the plot through its top, straight as it is drawn."""
    leaves = next((place for place, (_, y) in enumerate(trace) if y > up.high), None)
    if not leaves:
        return trace if leaves is None else []
    (x0, y0), (x1, y1) = trace[leaves - 1], trace[leaves]
    inside = math.log(up.high / y0) / math.log(y1 / y0) if isinstance(up, Log) else (up.high - y0) / (y1 - y0)
    return [*trace[:leaves], (x0 + inside * (x1 - x0), up.high)]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if place else 'M'}{x * 10:.1f} {y * 10:.1f}" for place, (x, y) in enumerate(points))


def _band(points: Points, across: Linear | Log, up: Linear | Log) -> str:
    highs = [(across(x), _down(up, value.high)) for x, value in points.values]
    lows = [(across(x), _down(up, value.low)) for x, value in points.values]
    return "" if highs == lows else f"{_path([*highs, *reversed(lows)])}Z"


def _labels_apart(lines: list[Line]) -> Iterable[Line]:
    """The same lines; labels that end at one x are moved apart."""
    ends: dict[float, list[Line]] = {}
    for line in lines:
        ends.setdefault(line.end[0], []).append(line)
    placed = {
        line.label: y
        for group in ends.values()
        for line, y in zip(group, spread([line.end[1] for line in group], LABEL_GAP), strict=True)
    }
    for line in lines:
        yield replace(line, end=(line.end[0], placed[line.label]))


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Moved as little down, and at the foot up, as leaves `gap` between neighbours; the order stays."""
    order = sorted(range(len(positions)), key=lambda place: positions[place])
    found, least = [0.0] * len(positions), -math.inf
    for place in order:
        found[place] = max(positions[place], least)
        least = found[place] + gap
    most = 100.0
    for place in reversed(order):
        found[place] = min(found[place], most)
        most = found[place] - gap
    return found
