"""What a learned drafter gives, or must reach, in words."""

from __future__ import annotations

from statistics import median

from breakeven.forecast.phrases import at, in_words, span, where_off
from breakeven.forecast.records import Forecast, Needed
from breakeven.interval import Interval
from breakeven.units import between, count, ratio

GOAL = 1.5
"""Speedup that is named beside break-even for a learned drafter; one of TARGETS."""


def given_sentences(forecast: Forecast) -> list[str]:
    """What a drafter gives whose acceptance was given, at its best window; nothing where none was."""
    row = forecast.best_given
    if row is None:
        return []
    cell, where = at(forecast, row), where_off(forecast, row)
    off = f"; leave it off {where}" if where and cell.outcome == "faster" else ""
    return [
        f"With the acceptance given, {row.drafter} does best at k={row.settings['k']}: decoding "
        f"{_as_fast(cell.speedup)} at concurrency {forecast.concurrency}{off}."
    ]


def _as_fast(interval: Interval) -> str:
    return f"{span(interval)} as fast" if interval.low > 1 else in_words(interval)


def needed_sentences(forecast: Forecast) -> list[str]:
    """What a drafter that is trained must reach, at the window where published ones come nearest to GOAL."""
    needed = [one for one in forecast.needed if one.concurrency == forecast.concurrency]
    if not needed:
        return []
    windows = [one for one in needed if _lengths(forecast, one.k)] or needed
    chosen = max(windows, key=lambda one: _within_reach(forecast, one))
    lengths = chosen.acceptance_length
    return [
        f"A trained drafter ({forecast.needed_for}) that drafts {count(chosen.k, 'token')} at every step "
        f"needs an acceptance length of {_length(lengths[1.0], chosen.k)} to break even and "
        f"{_length(lengths[GOAL], chosen.k)} for {ratio(GOAL)}{_reached(forecast, chosen.k)}."
    ]


def _within_reach(forecast: Forecast, one: Needed) -> float:
    reached = _lengths(forecast, one.k)
    return (median(reached) if reached else one.k + 1) / one.acceptance_length[GOAL].estimate


def _lengths(forecast: Forecast, k: int) -> list[float]:
    return [one.acceptance_length for one in forecast.published if one.k == k]


def _length(needed: Interval, k: int) -> str:
    said = f"{needed.estimate:.2f} ({needed.low:.2f} to {needed.high:.2f})"
    return f"{said}, which no draft of {k} gives," if needed.estimate > k + 1 else said


def _reached(forecast: Forecast, k: int) -> str:
    reached = _lengths(forecast, k)
    if not reached:
        return ""
    models = count(len({one.model for one in forecast.published if one.k == k}), "model")
    return f"; published lengths at k={k}: {between(min(reached), max(reached))}, on {models}"
