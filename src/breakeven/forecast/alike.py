"""Alike: windows of one drafter that came to the same on a record, as no draft of it was longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from breakeven.drafters.naming import settings_words

if TYPE_CHECKING:
    from breakeven.forecast.records import ForecastRow


def alike(rows: Sequence[ForecastRow]) -> list[tuple[ForecastRow, ...]]:
    """Groups of rows that differ in k alone and have the same counts and speedups, the smallest k first.

    They follow one another as their first members do in `rows`.
    """
    groups: dict[Any, list[ForecastRow]] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    return [tuple(sorted(group, key=_window)) for group in groups.values()]


def _window(row: ForecastRow) -> float:
    k = row.settings.get("k")
    return k if isinstance(k, (int, float)) else 0


def _key(row: ForecastRow) -> tuple[Any, ...]:
    """Speedups are rounded, as sums of other lengths differ in their last digits."""
    others = {name: value for name, value in row.settings.items() if name != "k"}
    speedups = tuple(f"{cell.speedup.estimate:.9g}" for cell in row.cells)
    return row.drafter, settings_words(others), row.counters, speedups
