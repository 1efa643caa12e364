"""Outlook: what is expected of a candidate before anything is restarted, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from breakeven.engines.speculation import SpeculationConfig
from breakeven.interval import Interval
from breakeven.trial.result import TrialResult


@dataclass(frozen=True, slots=True)
class Outlook:
    """One candidate."""

    candidate: SpeculationConfig
    speedup: Interval | None
    """Of decoding, as ForecastRow's cells; None where none could be forecast."""
    words: str
    """What is known instead of a speedup or beside it, one or more sentences; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one candidate."""

    outlook: Outlook
    result: TrialResult | None = None
    skipped: str = ""
    """Why it was not tried; empty where it was."""


def by_promise(outlooks: Iterable[Outlook]) -> list[Outlook]:
    """The highest estimate first; those without a forecast last, as they were given."""
    return sorted(outlooks, key=lambda one: -one.speedup.estimate if one.speedup else math.inf)


def reason_to_skip(outlook: Outlook, above: float | None, measured: Sequence[Interval]) -> str | None:
    """Why this candidate needs no restart; None where it may be worth one.

    A forecast decides only by its high end: it must exceed `above`, and must reach the low end of the best
    speedup that was measured so far. A candidate without a forecast is always tried.
    """
    if outlook.speedup is None:
        return None
    high = outlook.speedup.high
    if above is not None and not high > above:
        return f"its forecast ends at {high:.2f}, which is not above {above:g}"
    best = max((one.low for one in measured), default=-math.inf)
    if high < best:
        return f"its forecast ends at {high:.2f}, and {best:.2f} was measured at least"
    return None
