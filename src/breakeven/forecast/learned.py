"""What a learned drafter gives, or must reach, in words."""

from __future__ import annotations

from statistics import median

from breakeven.forecast.phrases import at, in_words, limits, span
from breakeven.forecast.records import Forecast, Needed
from breakeven.interval import Interval
from breakeven.units import between, count, ratio

GOAL = 1.5
"""Speedup that is named beside break-even for a learned drafter; one of TARGETS."""


def learned_sentences(forecast: Forecast) -> list[str]:
    """What it gives where its acceptance is known, else what it must reach."""
    return given_sentences(forecast) or needed_sentences(forecast)


def given_sentences(forecast: Forecast) -> list[str]:
    """What a drafter gives whose acceptance was given, at its best window; nothing where none was."""
    row = forecast.best_given
    if row is None:
        return []
    cell = at(forecast, row)
    return [
        f"With the acceptance given, {row.drafter} does best at k={row.settings['k']}: decoding "
        f"{_as_fast(cell.speedup)} at concurrency {forecast.concurrency}.",
        *(limits(forecast, row) if cell.outcome == "faster" else []),
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
    least, goal = chosen.acceptance_length[1.0], chosen.acceptance_length[GOAL]
    return [
        f"A trained drafter ({forecast.needed_for}) with k={chosen.k} breaks even at concurrency "
        f"{forecast.concurrency} with an acceptance length of {_length(least, chosen.k)}.",
        f"For {ratio(GOAL)} it needs {_length(goal, chosen.k)}.",
        *_reached(forecast, chosen.k, len(needed)),
    ]


def _within_reach(forecast: Forecast, one: Needed) -> float:
    reached = _lengths(forecast, one.k)
    return (median(reached) if reached else one.k + 1) / one.acceptance_length[GOAL].estimate


def _lengths(forecast: Forecast, k: int) -> list[float]:
    return [one.acceptance_length for one in forecast.published if one.k == k]


def _length(needed: Interval, k: int) -> str:
    said = f"{needed.estimate:.2f} ({needed.low:.2f} to {needed.high:.2f})"
    return f"{said}: out of reach, as its steps give {k + 1} at most" if needed.estimate > k + 1 else said


def _reached(forecast: Forecast, k: int, windows: int) -> list[str]:
    """What such drafters reached elsewhere, which is why this window is named."""
    reached = _lengths(forecast, k)
    if not reached:
        return []
    models = count(len({one.model for one in forecast.published if one.k == k}), "model")
    why = f", nearer to {ratio(GOAL)} than at another k" if windows > 1 else ""
    return [f"Published lengths at k={k}: {between(min(reached), max(reached))}, on {models}{why}."]
