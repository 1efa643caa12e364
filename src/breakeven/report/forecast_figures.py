"""The tables of a forecast, formatted once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from breakeven.forecast.phrases import at
from breakeven.forecast.records import TARGETS, Cell, Forecast, ForecastRow, outcome
from breakeven.interval import Interval
from breakeven.report.forecast_words import row_words
from breakeven.report.text import line
from breakeven.units import ABSENT, ratio, share

BEST_ROWS = 8
"""Shown on a terminal, with the best of each drafter that is not among them."""


@dataclass(frozen=True, slots=True)
class Speedup:
    """A speedup in a table; ABSENT twice where there is none."""

    estimate: str
    interval: str

    def __str__(self) -> str:
        return f"{self.estimate} ({self.interval})" if self.estimate != ABSENT else ABSENT


@dataclass(frozen=True, slots=True)
class Setting:
    """One row at one concurrency."""

    concurrency: int
    name: str
    tokens_per_step: str
    acceptance: str
    draft_share: str
    decoding: Speedup
    throughput: Speedup
    outcome: str


@dataclass(frozen=True, slots=True)
class Category:
    name: str
    decoding: Speedup
    outcome: str


@dataclass(frozen=True, slots=True)
class NeededRow:
    """Acceptance lengths for each of TARGETS, ABSENT where the window gives none so long."""

    k: str
    lengths: tuple[str, ...]
    published: str
    """Lengths reached at this window, least to most."""


def speedup(value: Interval | None) -> Speedup:
    """`1.40×` and `1.31× – 1.52×`."""
    if value is None or not math.isfinite(value.estimate):
        return Speedup(ABSENT, ABSENT)
    return Speedup(ratio(value.estimate), f"{ratio(value.low)} – {ratio(value.high)}")


def setting(row: ForecastRow, cell: Cell) -> Setting:
    """The row as it is at the cell's concurrency."""
    return Setting(
        cell.concurrency,
        row_words(row),
        f"{row.tokens_per_step:.3f}",
        share(row.counters.acceptance_rate),
        share(row.counters.draft_share),
        speedup(cell.speedup),
        speedup(cell.throughput_speedup),
        cell.outcome,
    )


def shortlist(forecast: Forecast) -> list[Setting]:
    """The best rows, the best of each drafter that is not among them, and those with given acceptance."""
    shown = [*_best_rows(forecast.rows), *forecast.given]
    return [setting(row, at(forecast, row)) for row in shown]


def _best_rows(rows: tuple[ForecastRow, ...]) -> Iterator[ForecastRow]:
    seen: set[str] = set()
    for place, row in enumerate(rows):
        if place < BEST_ROWS or row.drafter not in seen:
            yield row
        seen.add(row.drafter)


def by_concurrency(forecast: Forecast) -> list[Setting]:
    """The fastest setting at each; none without rows."""
    fastest = [(forecast.best_at(level), level) for level in forecast.concurrencies]
    return [setting(row, at(forecast, row, level)) for row, level in fastest if row is not None]


def categories(forecast: Forecast) -> list[Category]:
    """Of the setting that is recommended; none where there is only one, which is the total."""
    row = forecast.best
    found = at(forecast, row).by_category if row is not None else {}
    if len(found) < 2:
        return []
    return [Category(line(name, 40) or "(none)", speedup(one), outcome(one)) for name, one in found.items()]


def oracle(forecast: Forecast) -> list[str]:
    """`k=3 1.89×`, by window, at the forecast's concurrency."""
    return [
        f"k={row.settings.get('k', ABSENT)} {speedup(at(forecast, row).speedup).estimate}"
        for row in forecast.oracle
    ]


def needed(forecast: Forecast) -> list[NeededRow]:
    """By window, at the forecast's concurrency."""
    return [
        NeededRow(
            str(one.k),
            tuple(_length(one.acceptance_length[target], one.k) for target in TARGETS),
            _published(forecast, one.k),
        )
        for one in forecast.needed
        if one.concurrency == forecast.concurrency
    ]


def _length(value: Interval, k: int) -> str:
    return f"{value.estimate:.2f}" if value.estimate <= k + 1 else ABSENT


def _published(forecast: Forecast, k: int) -> str:
    reached = [one.acceptance_length for one in forecast.published if one.k == k]
    if not reached:
        return ABSENT
    low, high = min(reached), max(reached)
    return f"{low:.2f}" if low == high else f"{low:.2f} – {high:.2f}"
