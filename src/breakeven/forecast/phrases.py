"""Phrases that the sentences of a forecast are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakeven.drafters.naming import ALWAYS, settings_words, varying
from breakeven.forecast.alike import alike
from breakeven.forecast.records import BreakEven, Cell, Forecast, ForecastRow
from breakeven.interval import Interval
from breakeven.units import ratio

LEAST_SHARE = 5e-4
"""A draft share below it reads as 0.0 %: whatever is drafted pays."""


def at(forecast: Forecast, row: ForecastRow, concurrency: int | None = None) -> Cell:
    """The row's cell, at the forecast's concurrency unless another is given."""
    wanted = forecast.concurrency if concurrency is None else concurrency
    return row.cells[forecast.concurrencies.index(wanted)]


def limits(forecast: Forecast, row: ForecastRow) -> list[str]:
    """Above the forecast's concurrency: where it is sure to pay, where undecided, where to leave it off.

    One sentence; none where no higher concurrency was forecast.
    """
    above = [c for c in forecast.concurrencies if c > forecast.concurrency]
    of = {c: at(forecast, row, c) for c in above}
    open_, slower = ([c for c in above if of[c].outcome == one] for one in ("undecided", "slower"))
    off = open_ + slower
    if not off:
        return [f"It is sure to pay up to concurrency {above[-1]}."] if above else []
    said = [f"it is sure to pay up to concurrency {c}" for c in [c for c in above if c < min(off)][-1:]]
    if open_:
        said.append(
            f"{where(open_, above)} it is undecided ({inside(of[open_[0]].speedup)}): a trial would tell"
        )
    if slower:
        said.append(f"leave it off {where(slower, above)} ({inside(of[slower[0]].speedup)})")
    sentence = "; ".join(said)
    return [f"{sentence[0].upper()}{sentence[1:]}."]


def where(levels: Sequence[int], above: Sequence[int]) -> str:
    """`from concurrency 8 on` where `levels` are the last of `above`; else `at concurrency 2, 8`, as a curve
    may have bumps beyond which it pays again."""
    if list(levels) == list(above[-len(levels) :]):
        return f"from concurrency {levels[0]} on"
    return f"at concurrency {', '.join(map(str, levels))}"


def named(row: ForecastRow, rows: Iterable[ForecastRow]) -> str:
    """`vllm-ngram k=3 n=2–4`: window and n-grams, and the settings in which this drafter's `rows` differ."""
    return f"{row.drafter} {settings_of(row, rows)}".rstrip()


def settings_of(row: ForecastRow, rows: Iterable[ForecastRow]) -> str:
    """As `named`, without the drafter."""
    mine = [one.settings for one in rows if one.drafter == row.drafter]
    return settings_words(row.settings, ALWAYS | varying(mine))


def merged(rows: Sequence[ForecastRow]) -> list[tuple[ForecastRow, str]]:
    """One row of each group of windows that came to the same, and its settings: `k=5…16 n=2–4`."""
    return [(group[0], _of_group(group, rows)) for group in alike(rows)]


def _of_group(group: Sequence[ForecastRow], rows: Sequence[ForecastRow]) -> str:
    said = settings_of(group[0], rows)
    if len(group) < 2:
        return said
    least, most = (f"k={row.settings['k']}" for row in (group[0], group[-1]))
    return " ".join(f"{word}…{most[2:]}" if word == least else word for word in said.split())


def any_share_pays(needs: BreakEven) -> bool:
    """Whether a draft share too small to be shown would break even."""
    return needs.draft_share is not None and needs.draft_share < LEAST_SHARE


def span(interval: Interval) -> str:
    """`1.40× (1.31× to 1.52×)`."""
    return f"{ratio(interval.estimate)} ({ratio(interval.low)} to {ratio(interval.high)})"


def inside(interval: Interval) -> str:
    """The same within parentheses: `1.40×, 1.31× to 1.52×`."""
    return f"{ratio(interval.estimate)}, {ratio(interval.low)} to {ratio(interval.high)}"


def in_words(interval: Interval) -> str:
    """What it is where it is sure to pay; else that it is slower, or undecided."""
    if interval.low > 1:
        return span(interval)
    return f"{'slower' if interval.high < 1 else 'undecided'} at {span(interval)}"
