"""Phrases that the sentences of a forecast are made of."""

from __future__ import annotations

from collections.abc import Iterable

from breakeven.forecast.records import Cell, Forecast, ForecastRow
from breakeven.interval import Interval
from breakeven.units import ratio, share

_ALWAYS = {"k", "n", "min_n", "max_n"}
"""Settings that are named even where they do not vary."""


def at(forecast: Forecast, row: ForecastRow, concurrency: int | None = None) -> Cell:
    """The row's cell, at the forecast's concurrency unless another is given."""
    wanted = forecast.concurrency if concurrency is None else concurrency
    return row.cells[forecast.concurrencies.index(wanted)]


def where_off(forecast: Forecast, row: ForecastRow) -> str | None:
    """Above the forecast's concurrency, where the row is not sure to pay: `from concurrency 8 on`; None
    where it always is. A curve may have bumps, beyond which it pays again: `at concurrency 2, 8`."""
    above = [c for c in forecast.concurrencies if c > forecast.concurrency]
    off = [c for c in above if at(forecast, row, c).outcome != "faster"]
    if not off:
        return None
    if off == above[-len(off) :]:
        return f"from concurrency {off[0]} on"
    return f"at concurrency {', '.join(map(str, off))}"


def named(row: ForecastRow, rows: Iterable[ForecastRow]) -> str:
    """`vllm-ngram at k=3, n 2–4`, with the settings in which this drafter's `rows` differ."""
    alike = [one.settings for one in rows if one.drafter == row.drafter]
    shown = [
        f"{name}={value}"
        for name, value in row.settings.items()
        if name not in ("min_n", "max_n")
        and (name in _ALWAYS or any(one.get(name) != value for one in alike))
    ]
    low, high = row.settings.get("min_n"), row.settings.get("max_n")
    if high is not None:
        shown.append(f"n {high}" if low in (None, high) else f"n {low}–{high}")
    return f"{row.drafter} at {', '.join(shown)}" if shown else row.drafter


def span(interval: Interval) -> str:
    """`1.40× (1.31× to 1.52×)`."""
    return f"{ratio(interval.estimate)} ({ratio(interval.low)} to {ratio(interval.high)})"


def slower(interval: Interval) -> str:
    """`4.0 % slower (2.0 % to 6.0 %)`."""
    most, least = share(1 - interval.low), share(1 - interval.high)
    return f"{share(1 - interval.estimate)} slower ({least} to {most})"


def in_words(interval: Interval) -> str:
    """On one side of 1 what it is, else that it is undecided."""
    if interval.high < 1:
        return slower(interval)
    return span(interval) if interval.low > 1 else f"undecided at {span(interval)}"
