"""The tables of a forecast, formatted once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.forecast.phrases import at, merged, settings_of
from breakeven.forecast.records import TARGETS, Cell, Forecast, ForecastRow, outcome
from breakeven.interval import Interval
from breakeven.report.text import line
from breakeven.units import ABSENT, count, ratio, share

BEST_ROWS = 6
"""Shown on a terminal, with the best of each drafter that is not among them."""
MARK = "* "
"""Before the setting that is recommended."""


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
    drafter: str
    settings: str
    """With the windows that came to the same: `k=5…16`."""
    recommended: bool
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


def setting(row: ForecastRow, settings: str, cell: Cell, recommended: bool) -> Setting:
    """The row as it is at the cell's concurrency."""
    return Setting(
        cell.concurrency,
        line(row.drafter, 60),
        line(settings, 300),
        recommended,
        f"{row.tokens_per_step:.3f}",
        share(row.counters.acceptance_rate),
        share(row.counters.draft_share),
        speedup(cell.speedup),
        speedup(cell.throughput_speedup),
        cell.outcome,
    )


def ranked(forecast: Forecast) -> list[tuple[ForecastRow, str]]:
    """All rows with their settings in words, windows that came to the same as one: the recommended one, then
    by speedup; last those with given acceptance."""
    rows, best = merged(forecast.rows), forecast.best
    first = [one for one in rows if one[0] is best]
    return [*first, *(one for one in rows if one[0] is not best), *merged(forecast.given)]


def shortlist(forecast: Forecast) -> list[Setting]:
    """The best rows, the best of each drafter that is not among them, and those with given acceptance."""
    best = forecast.best
    return [
        setting(row, said, at(forecast, row), row is best)
        for row, said in _best_rows(ranked(forecast), forecast)
    ]


def _best_rows(rows: list[tuple[ForecastRow, str]], forecast: Forecast) -> Iterator[tuple[ForecastRow, str]]:
    given = {id(row) for row in forecast.given}
    seen: set[str] = set()
    for place, (row, said) in enumerate(rows):
        if place < BEST_ROWS or row.drafter not in seen or id(row) in given:
            yield row, said
        seen.add(row.drafter)


def by_concurrency(forecast: Forecast) -> list[Setting]:
    """The setting to take at each."""
    best = forecast.best
    found = [(forecast.best_at(level), level) for level in forecast.concurrencies]
    return [
        setting(row, settings_of(row, forecast.rows), at(forecast, row, level), row is best)
        for row, level in found
        if row is not None
    ]


def tried(forecast: Forecast) -> str:
    """`49 settings tried: k 2, 4, 8, 16; n 2–3, 4; --ks and --n-ranges try others`; empty without rows."""
    if not forecast.rows:
        return ""
    settings = [row.settings for row in forecast.rows]
    ks = sorted({one["k"] for one in settings if isinstance(one.get("k"), int)})
    ns = sorted({_n_range(one) for one in settings} - {None}, key=str)
    named = [f"k {', '.join(map(str, ks))}"] if ks else []
    named += [f"n {', '.join(map(str, ns))}"] if ns else []
    options = " and ".join(["--ks"] * bool(ks) + ["--n-ranges"] * bool(ns))
    more = f"; {options} for others" if options else ""
    return f"{count(len(settings), 'setting')} tried{': ' if named else ''}{'; '.join(named)}{more}."


def _n_range(settings: Mapping[str, Any]) -> str | None:
    low, high = settings.get("min_n"), settings.get("max_n", settings.get("n"))
    if not isinstance(high, int):
        return None
    return f"{low}–{high}" if isinstance(low, int) and low != high else str(high)


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
