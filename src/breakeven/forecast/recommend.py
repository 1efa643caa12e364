"""What a forecast comes to, in words: which setting, how fast, where not, and what would settle or try it."""

from __future__ import annotations

import math
import shlex

from breakeven.forecast.learned import given_sentences, needed_sentences
from breakeven.forecast.phrases import at, in_words, named, slower, span, where_off
from breakeven.forecast.records import Cell, Forecast, ForecastRow
from breakeven.units import count, share

_SERVERS = {
    "vllm": "vllm serve …",
    "sglang": "python -m sglang.launch_server …",
    "tensorrt-llm": "trtllm-serve …",
    "llama.cpp": "llama-server …",
}
"""By engine: what its flags are typed after."""


def recommendation(forecast: Forecast) -> str:
    """Some sentences, from all that the forecast holds but its own `recommendation` and `next_commands`.

    A setting is called faster or slower only where its whole interval is; else it is called undecided, with
    what would settle it. A learned drafter comes last: what it gives where its acceptance is known, else what
    it must reach.
    """
    chosen = forecast.best
    if chosen is None:
        sentences = []
    elif math.isnan(at(forecast, chosen).speedup.estimate):
        sentences = ["No request of the record has a decode step, so there is nothing to speed up."]
    elif at(forecast, chosen).outcome == "faster":
        sentences = [_pays(forecast, chosen), *_limit(forecast, chosen)]
    elif at(forecast, chosen).outcome == "undecided":
        sentences = [_undecided(forecast, chosen), _settles(forecast, chosen), *_elsewhere(forecast)]
    else:
        sentences = [_pays_not(forecast, chosen), _missing(forecast, chosen), *_elsewhere(forecast)]
    return " ".join((*sentences, *(given_sentences(forecast) or needed_sentences(forecast))))


def next_commands(forecast: Forecast) -> tuple[str, ...]:
    """To type next, in order: the server with the winner's flags and a trial of it.

    A calibration and the forecast again, where that would settle what is undecided. Nothing where nothing
    pays. `…` stands for the options of one's own.
    """
    chosen = forecast.best
    if chosen is None:
        return ()
    cell = at(forecast, chosen)
    if cell.outcome == "undecided" and _is_of_cost(cell) and forecast.basis.source != "measured":
        path = shlex.quote(forecast.origin.path) if forecast.origin else "RUN"
        return "breakeven calibrate URL", f"breakeven forecast {path} --calibration FILE"
    return _trial(chosen, forecast.concurrency) if cell.speedup.estimate > 1 else ()


def _pays(forecast: Forecast, row: ForecastRow) -> str:
    cell = at(forecast, row)
    return (
        f"{named(row, forecast.rows)} would make decoding {span(cell.speedup)} as fast at concurrency "
        f"{forecast.concurrency}{_categories(cell)}.{_stranger(forecast, row)}"
    )


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


def _limit(forecast: Forecast, row: ForecastRow) -> list[str]:
    """Above which concurrency it no longer pays, and what still does there."""
    above = [c for c in forecast.concurrencies if c > forecast.concurrency]
    first = next((c for c in above if at(forecast, row, c).outcome != "faster"), None)
    if first is None:
        return [f"It pays at every concurrency up to {above[-1]}."] if above else []
    cell, other = at(forecast, row, first), _still_pays(forecast, first)
    why = "" if cell.outcome == "slower" else f": at {first} it is {in_words(cell.speedup)}"
    said = [f"Leave it off {where_off(forecast, row)}{why}."]
    if other is not None:
        there = span(at(forecast, other, first).speedup)
        said.append(f"{named(other, forecast.rows)} still pays there: {there}.")
    return [*said, *_no_longer(forecast, [c for c in above if c > first])] if other else said


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
        f"{count(len(forecast.candidates), 'setting')}, {named(row, forecast.rows)}, comes to "
        f"{span(cell.speedup)}{_categories(cell)}.{_stranger(forecast, row)}"
    )


def _is_of_cost(cell: Cell) -> bool:
    """Whether most of the interval's variance is the cost's; the rest is the requests'."""
    cost, whole = (
        (one.high - one.low) / one.estimate if one.estimate else 0.0
        for one in (cell.step_ratio, cell.speedup)
    )
    return 2 * cost**2 >= whole**2


def _settles(forecast: Forecast, row: ForecastRow) -> str:
    if not _is_of_cost(at(forecast, row)):
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
    tried = len(forecast.candidates)
    head = f"None of {count(tried, 'setting')} pays" if tried > 1 else "It does not pay"
    return (
        f"{head} at concurrency {forecast.concurrency}: {named(row, forecast.rows)} would be "
        f"{slower(cell.speedup)}{_categories(cell)}.{_stranger(forecast, row)}"
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
    return f"{said}: {by_rate}, or drafts in {share(needs.draft_share)} of the steps instead of {drafts}."


def _trial(row: ForecastRow, concurrency: int) -> tuple[str, ...]:
    if not row.flags or row.engine not in _SERVERS:
        return ()
    sides = "--baseline-url URL --candidate-url URL"
    if row.engine == "llama.cpp":
        sides = f"… --candidate {shlex.quote(row.flags)}"
    at_once = f" --concurrency {concurrency}" if concurrency > 1 else ""
    return f"{_SERVERS[row.engine]} {row.flags}", f"breakeven trial {sides}{at_once}"
