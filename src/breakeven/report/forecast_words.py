"""What is said of a forecast in words, once, so that terminal, page and JSON say the same."""

from __future__ import annotations

import math

from breakeven.acceptance import counters
from breakeven.forecast.phrases import at, span
from breakeven.forecast.records import Forecast, ForecastRow
from breakeven.report.definitions import Definition
from breakeven.report.replay_words import settings_words, skipped_sentences
from breakeven.report.text import line
from breakeven.units import count, share

_TERMS = {
    "speedup": (
        "Decode speedup",
        "time per output token (TPOT) without / with speculation, the geometric mean over requests; prefill "
        "is not in it; above 1 speculation pays",
    ),
    "throughput_speedup": (
        "Throughput speedup",
        "output tokens per second with / without speculation, of the whole record served at this "
        "concurrency: prefill, requests that leave the batch and stragglers are in it",
    ),
    "interval": (
        "Interval",
        "where the truth is expected at 95 %: bootstrap over requests, with the error of the cost; it speaks "
        "for requests like these, and a category's for requests like its own",
    ),
    "outcome": ("Outcome", "faster or slower where the interval lies on one side of 1, else undecided"),
    "step_ratio": (
        "Step ratio",
        "a mean step with speculation in plain steps of as many sequences, drafting included",
    ),
    "break_even": (
        "Break-even",
        "what makes a token take as long as without speculation: tokens per step equal to the step ratio; "
        "the acceptance rate, at the draft share that there is; the draft share, at the acceptance that "
        "there is",
    ),
    "oracle": ("Oracle", "upper bound of a window: every step drafts, and all that it drafts is accepted"),
    "needed": (
        "Acceptance length needed",
        "tokens that a step must emit, its own token included, of a drafter that drafts k tokens at every "
        "step; above k + 1 none can",
    ),
    "reuse": (
        "Reuse",
        "share of a token's experts that earlier tokens of its sequence in the step have woken, beyond "
        "chance",
    ),
}
_ACCEPTANCE = {
    "acceptance_rate": "Acceptance rate",
    "tokens_per_step": "Tokens per step",
    "draft_share": "Draft share",
}
FORECAST_DEFINITIONS: tuple[Definition, ...] = (
    *(Definition(key, title, text) for key, (title, text) in _TERMS.items()),
    *(Definition(key, title, counters.DEFINITIONS[key]) for key, title in _ACCEPTANCE.items()),
)
"""Terms of a forecast, its figures first."""


def record_sentence(forecast: Forecast) -> str:
    """What the forecast is of: `runs/x (run): 80 requests, 49,848 output tokens`."""
    if forecast.origin is None:
        return f"No record: what a trained drafter {'gives' if forecast.given else 'must reach'}"
    said = f"{count(forecast.requests, 'request')}, {count(forecast.output_tokens, 'output token')}"
    return f"{line(forecast.origin.path, 500)} ({forecast.origin.kind}): {said}"


def headline(forecast: Forecast) -> str:
    """The answer at a glance: `1.40× (1.31× to 1.52×) decode speedup at concurrency 8`.

    Without a record, of the drafter whose acceptance was given, at its best window.
    """
    row = forecast.best or forecast.best_given
    if row is None:
        return f"What {line(forecast.needed_for, 60)} must reach"
    cell = at(forecast, row)
    if math.isnan(cell.speedup.estimate):
        return "No decode step to speed up"
    whose = "" if forecast.best else f" with {row_words(row)}"
    doubt = ", undecided" if cell.outcome == "undecided" else ""
    return f"{span(cell.speedup)} decode speedup{whose} at concurrency {forecast.concurrency}{doubt}"


def row_words(row: ForecastRow) -> str:
    """Drafter and settings."""
    return f"{line(row.drafter, 60)} {settings_words(row.settings)}".rstrip()


def basis_sentences(forecast: Forecast) -> list[str]:
    """Where the cost of a step, of drafting and of the prefill come from."""
    basis = forecast.basis
    return [
        f"Cost ({basis.source}): {line(basis.words, 1000)}",
        f"Drafting: {line(basis.drafting, 1000)}",
        f"Prefill: {line(basis.prefill, 1000)}",
    ]


def break_even_sentence(forecast: Forecast, row: ForecastRow) -> str:
    """What the row reaches, and what it needs at the forecast's concurrency."""
    needs, reached = at(forecast, row).break_even, row.counters
    said = (
        f"Break-even of {row_words(row)} at concurrency {forecast.concurrency}: {needs.tokens_per_step:.3f} "
        f"tokens per step (it has {row.tokens_per_step:.3f})"
    )
    if needs.acceptance_rate is None:
        return f"{said}."
    rate = f"an acceptance rate of {share(needs.acceptance_rate)}"
    if needs.acceptance_rate > 1:
        rate = "at its draft share no acceptance rate would do"
    said += f", {rate} (it has {share(reached.acceptance_rate)})"
    if needs.draft_share is None:
        return f"{said}; no draft share would do at its acceptance."
    if needs.draft_share == 0:
        return f"{said}; at its acceptance any draft share pays."
    return f"{said}, or a draft share of {share(needs.draft_share)} (it has {share(reached.draft_share)})."


def notes(forecast: Forecast) -> list[str]:
    """All that must be said beside the figures, each once."""
    said = (*skipped_sentences(forecast.skipped), *forecast.warnings)
    return [line(note, 1000) for note in dict.fromkeys(said)]
