"""Heat maps and the scatter of a replay and a sweep: what is drawn where, with the number in every cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from breakeven.acceptance.record import Acceptance
from breakeven.drafters.naming import value_words, varying
from breakeven.replay.records import Sweep, SweepRow
from breakeven.report.replay_figures import by_drafter
from breakeven.report.replay_words import decimal, per_step, row_words, settings_words
from breakeven.report.svg import Linear, Tick, padded
from breakeven.report.text import line
from breakeven.units import share

SHADES = 10
"""Classes h0 … h9 of the style sheet."""
COLOURS = 8
MOST_CELLS = 40
"""Rows, and columns, of a histogram that are drawn: its shortest drafts and accepted lengths."""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    shade: int
    note: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cells by row and column; None where nothing was counted."""

    title: str
    across: str
    """What the columns are."""
    down: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    cut: bool = False
    """Further rows or columns are not drawn."""


def heat_maps(sweep: Sweep) -> list[HeatMap]:
    """One for each drafter with several settings, all shaded on one scale of tokens per step."""
    values = [row.tokens_per_step for row in sweep.rows]
    scale = Linear(min(values), max(values))
    return [_map(name, rows, scale) for name, rows in by_drafter(sweep).items() if _varying(rows)]


def _varying(rows: list[SweepRow]) -> set[str]:
    return varying(row.settings for row in rows)


def _map(name: str, rows: list[SweepRow], scale: Linear) -> HeatMap:
    differing = _varying(rows)
    column = _column(rows, differing)
    down = sorted({_key(row, differing - {column}) for row in rows}, key=_order)
    across = sorted({row.settings.get(column) for row in rows}, key=lambda value: _order((value,)))
    found = {(_key(row, differing - {column}), row.settings.get(column)): row for row in rows}
    best = rows[0]
    grid = [
        (
            settings_words(dict(key)) or line(name, 40),
            tuple(_cell(found.get((key, value)), best, scale) for value in across),
        )
        for key in down
    ]
    names = settings_names(differing - {column})
    return HeatMap(
        line(name, 60), column, names, tuple(line(value_words(value), 40) for value in across), tuple(grid)
    )


def settings_names(names: set[str]) -> str:
    """What the rows of a heat map are: `n` for a range of n-grams."""
    return ", ".join(sorted({"n" if name in ("min_n", "max_n") else name for name in names}))


def _column(rows: list[SweepRow], differing: set[str]) -> str:
    """The setting that runs across: k if it differs, else the one with the most values."""
    if "k" in differing:
        return "k"
    return max(sorted(differing), key=lambda name: len({row.settings.get(name) for row in rows}))


def _key(row: SweepRow, names: set[str]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, row.settings[name]) for name in row.settings if name in names)


def _order(values: tuple[Any, ...]) -> list[Any]:
    """Numbers by size, and before words."""
    return [(isinstance(value, str), value if value is not None else -1) for value in _flat(values)]


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        yield value[1] if isinstance(value, tuple) else value


def _cell(row: SweepRow | None, best: SweepRow, scale: Linear) -> Cell | None:
    if row is None:
        return None
    return Cell(f"{row.tokens_per_step:.2f}", _shade(scale(row.tokens_per_step)), row_words(row), row is best)


def _shade(percent: float) -> int:
    return min(int(percent / 100 * SHADES), SHADES - 1)


def histogram(total: Acceptance) -> HeatMap | None:
    """Steps by drafted (down) and accepted tokens, shaded by the share of their row; None without drafts."""
    drafting = total.histogram[total.histogram[:, 0] > 0]
    if not len(drafting):
        return None
    drafted, accepted = (np.unique(drafting[:, column]) for column in (0, 1))
    rows, columns = drafted[:MOST_CELLS].tolist(), accepted[:MOST_CELLS].tolist()
    steps = {(d, a): n for d, a, n in drafting.tolist()}
    whole = {d: int(drafting[drafting[:, 0] == d, 2].sum()) for d in rows}
    return HeatMap(
        "Steps by drafted and accepted tokens",
        "accepted",
        "drafted",
        tuple(map(str, columns)),
        tuple((str(d), tuple(_count(steps.get((d, a), 0), whole[d]) for a in columns)) for d in rows),
        cut=len(drafted) > len(rows) or len(accepted) > len(columns),
    )


def _count(n: int, total: int) -> Cell | None:
    return Cell(f"{n:,}", _shade(100 * n / total)) if n else None


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    colour: int
    hollow: bool
    """For drafters after the eighth, which share a colour with an earlier one."""
    pareto: bool
    text: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Each setting by its acceptance rate and its tokens per step, the two that the Pareto front weighs."""

    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
    """Their positions count downwards, as SVG does."""
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    """Those of the points that are on the Pareto front, most tokens per step first."""
    drafters: tuple[tuple[str, int, bool], ...]
    """Name, colour, hollow."""
    text: str


def scatter(sweep: Sweep) -> Scatter | None:
    """Of the settings that drafted; None where none did."""
    rows = [row for row in sweep.rows if row.counters.drafts]
    if not rows:
        return None
    across = Linear(*padded([_percent(row) for row in rows]))
    up = Linear(*padded([row.tokens_per_step for row in rows]))
    places = {name: place for place, name in enumerate(by_drafter(sweep))}
    points = tuple(_point(row, places[row.drafter], across, up) for row in rows)
    front = tuple(point for point in points if point.pareto)
    return Scatter(
        tuple(replace(tick, label=f"{tick.label} %") for tick in across.ticks()),
        tuple(Tick(tick.value, 100 - tick.position, tick.label) for tick in up.ticks(5)),
        points,
        front,
        tuple((line(name, 60), place % COLOURS, place >= COLOURS) for name, place in places.items()),
        f"{len(points)} settings, {len(front)} of them on the Pareto front",
    )


def _percent(row: SweepRow) -> float:
    """Acceptance rate."""
    return 100 * (row.counters.acceptance_rate or 0.0)


def _point(row: SweepRow, place: int, across: Linear, up: Linear) -> Point:
    said = (
        f"{row_words(row)}: {decimal(row.tokens_per_step)} tokens per step, acceptance "
        f"{share(row.counters.acceptance_rate)}, "
        f"{per_step(row.counters.drafted_tokens, row.counters)} drafted per step"
    )
    x, y = across(_percent(row)), 100 - up(row.tokens_per_step)
    return Point(x, y, place % COLOURS, place >= COLOURS, row.pareto, said)
