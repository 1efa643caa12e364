"""What a forecast comes to, in words: which setting, how fast, where not, and what would settle it."""

from __future__ import annotations

import math

from breakeven.forecast.learned import learned_sentences
from breakeven.forecast.phrases import any_share_pays, at, in_words, inside, limits, named, span
from breakeven.forecast.records import Cell, Forecast, ForecastRow, outcome
from breakeven.units import count, share


def recommendation(forecast: Forecast) -> str:
    """Some sentences, from all that the forecast holds but its own `recommendation` and `next_commands`.

    A setting is called faster or slower only where its whole interval is; else it is called undecided, with
    what would settle it. Of a trained drafter they speak only where there is no record.
    """
    chosen = forecast.best
    if chosen is None:
        return " ".join(learned_sentences(forecast))
    if math.isnan(at(forecast, chosen).speedup.estimate):
        return "No request of the record has a decode step, so there is nothing to speed up."
    cell = at(forecast, chosen)
    if cell.outcome == "faster":
        said = [_pays(forecast, chosen), *_yet(cell), *_preferred(forecast, chosen), *_warned(chosen)]
        return " ".join([*said, *limits(forecast, chosen), *_others(forecast, chosen)])
    if cell.outcome == "undecided":
        said = [_undecided(forecast, chosen), _settles(forecast, chosen), *_warned(chosen)]
    else:
        said = [_pays_not(forecast, chosen), _missing(forecast, chosen)]
    return " ".join([*said, *_elsewhere(forecast)])


def _preferred(forecast: Forecast, row: ForecastRow) -> list[str]:
    """Why it stands before those with a higher estimate."""
    higher = [
        one
        for one in forecast.candidates
        if at(forecast, one).speedup.estimate > at(forecast, row).speedup.estimate
    ]
    if not higher:
        return []
    others = f" and {len(higher) - 1} more" if len(higher) > 1 else ""
    return [
        f"It is sure to pay, and so stands before {named(higher[0], forecast.rows)} "
        f"({inside(at(forecast, higher[0]).speedup)}){others}, whose estimate is higher and which may not."
    ]


def _warned(row: ForecastRow) -> list[str]:
    return [f"Beware: {warning}." for warning in row.warnings]


def _pays(forecast: Forecast, row: ForecastRow) -> str:
    cell = at(forecast, row)
    return (
        f"{named(row, forecast.rows)} would make decoding {span(cell.speedup)} as fast at concurrency "
        f"{forecast.concurrency}{_categories(cell)}.{_stranger(forecast, row)}"
    )


def _yet(cell: Cell) -> list[str]:
    """That the server as a whole gets less done, where it does: a mean of ratios over requests may rise with
    a few that gain much and slow down all others in the batch."""
    whole = cell.throughput_speedup
    if whole is None or outcome(whole) != "slower":
        return []
    return [f"The whole record would take longer, though: its throughput would be {span(whole)}."]


def _categories(cell: Cell) -> str:
    """The best and the worst, where they differ in kind; else nothing."""
    if len(cell.by_category) < 2:
        return ""
    ranked = sorted(cell.by_category.items(), key=lambda one: one[1].estimate)
    (worst, lowest), (best, highest) = ranked[0], ranked[-1]
    if (lowest.low > 1) == (highest.low > 1) and (lowest.high < 1) == (highest.high < 1):
        return ""
    return f": {best} {in_words(highest)}, {worst} {in_words(lowest)}"


def _stranger(forecast: Forecast, row: ForecastRow) -> str:
    engine = forecast.origin.engine if forecast.origin else None
    if engine in (None, row.engine):
        return ""
    return f" It is a drafter of {row.engine}; {engine}, which served the record, has none of those tried."


def _others(forecast: Forecast, row: ForecastRow) -> list[str]:
    """What else is sure to pay where this is no longer."""
    above = [c for c in forecast.concurrencies if c > forecast.concurrency]
    first = next((c for c in above if at(forecast, row, c).outcome != "faster"), None)
    other = None if first is None else _still_pays(forecast, first)
    if first is None or other is None:
        return []
    there = span(at(forecast, other, first).speedup)
    said = f"At concurrency {first} {named(other, forecast.rows)} is sure to pay: {there}."
    return [said, *_no_longer(forecast, [c for c in above if c > first])]


def _no_longer(forecast: Forecast, above: list[int]) -> list[str]:
    nothing = next((c for c in above if _still_pays(forecast, c) is None), None)
    return [] if nothing is None else [f"At concurrency {nothing} no setting is sure to pay."]


def _still_pays(forecast: Forecast, concurrency: int) -> ForecastRow | None:
    """The fastest there of those of the engine that are sure to pay."""
    sure = [row for row in forecast.candidates if at(forecast, row, concurrency).outcome == "faster"]
    return max(sure, key=lambda row: at(forecast, row, concurrency).speedup.estimate, default=None)


def _elsewhere(forecast: Forecast) -> list[str]:
    """At which other concurrency something is sure to pay."""
    for concurrency in forecast.concurrencies:
        row = _still_pays(forecast, concurrency)
        if row is not None:
            speedup = at(forecast, row, concurrency).speedup
            return [f"At concurrency {concurrency} {named(row, forecast.rows)} would pay: {span(speedup)}."]
    return []


def _undecided(forecast: Forecast, row: ForecastRow) -> str:
    cell = at(forecast, row)
    return (
        f"Undecided at concurrency {forecast.concurrency}: the most promising of "
        f"{count(_tried(forecast, row), 'setting')}, {named(row, forecast.rows)}, comes to "
        f"{span(cell.speedup)}{_categories(cell)}.{_stranger(forecast, row)}"
    )


def _tried(forecast: Forecast, row: ForecastRow) -> int:
    """Settings of its engine's drafters."""
    return sum(one.engine == row.engine for one in forecast.rows)


def is_of_cost(cell: Cell) -> bool:
    """Whether most of the interval's variance is the cost's; the rest is the requests'."""
    cost, whole = (
        (one.high - one.low) / one.estimate if one.estimate else 0.0
        for one in (cell.step_ratio, cell.speedup)
    )
    return 2 * cost**2 >= whole**2


def _settles(forecast: Forecast, row: ForecastRow) -> str:
    if not is_of_cost(at(forecast, row)):
        requests = count(forecast.requests, "request")
        return (
            f"Most of the interval comes from how the record's {requests} differ: a record with more prompts "
            "would narrow it."
        )
    if forecast.basis.source == "measured":
        return (
            "Most of the interval is the error of the calibration: a longer one would narrow it, a trial "
            "settle it."
        )
    return (
        f"Most of the interval is the error of a cost that is {forecast.basis.source}: a calibration of the "
        "running server would narrow it."
    )


def _pays_not(forecast: Forecast, row: ForecastRow) -> str:
    cell = at(forecast, row)
    tried = _tried(forecast, row)
    head = f"None of {count(tried, 'setting')} pays" if tried > 1 else "It does not pay"
    return (
        f"{head} at concurrency {forecast.concurrency}: {named(row, forecast.rows)} would be "
        f"slower: {span(cell.speedup)}{_categories(cell)}.{_stranger(forecast, row)}"
    )


def _missing(forecast: Forecast, row: ForecastRow) -> str:
    """What it reaches against what it would need."""
    needs, reached = at(forecast, row).break_even, row.counters
    said = f"It reaches {row.tokens_per_step:.3f} tokens per step and needs {needs.tokens_per_step:.3f}"
    if row.tokens_per_step >= needs.tokens_per_step:
        return f"{said}: enough over all steps, but not in the mean over requests."
    if needs.acceptance_rate is None:
        return f"{said}; it never drafts."
    rate, drafts = share(reached.acceptance_rate), share(reached.draft_share)
    if needs.acceptance_rate > 1:
        by_rate = f"no acceptance rate would do at its draft share of {drafts}"
    else:
        by_rate = f"an acceptance rate of {share(needs.acceptance_rate)} instead of {rate}"
    if needs.draft_share is None:
        return f"{said}: {by_rate}, and no draft share would do at its acceptance rate of {rate}."
    if any_share_pays(needs):
        return f"{said}: {by_rate}, or any draft share at its acceptance rate of {rate}."
    return f"{said}: {by_rate}, or drafts in {share(needs.draft_share)} of the steps instead of {drafts}."
