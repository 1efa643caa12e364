"""What is said of a forecast in words, once, so that terminal, page and JSON say the same."""

from __future__ import annotations

import math

from breakeven.acceptance import counters
from breakeven.forecast.learned import learned_sentences
from breakeven.forecast.phrases import any_share_pays, at, named, span
from breakeven.forecast.records import Forecast, ForecastRow
from breakeven.report.bars import interval_ms
from breakeven.report.definitions import Definition
from breakeven.report.replay_words import record_words, skipped_sentences
from breakeven.report.text import line
from breakeven.units import milliseconds, share

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
        "95 % for requests like those of the record, by bootstrap, a category's for requests like its own; "
        "with the error of the cost, which is 95 % too for a measured one and assumed for a modelled one",
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
    "oracle": (
        "Oracle",
        "every step drafts k tokens, and all are accepted: upper bound of a window, unless verifying so many "
        "costs more than they save, where shorter drafts may beat it",
    ),
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


IN_SHORT = (
    "decoding: time per output token (TPOT) without / with speculation, the geometric mean over requests, "
    "without prefill. throughput: output tokens per second of the whole record with / without, prefill and "
    "stragglers included. interval: 95 % over requests, with the error of the cost; faster or slower where "
    "it leaves out 1. tokens/step: emitted / all steps; draft share: steps that drafted / all; acceptance: "
    "accepted / drafted tokens. oracle: k tokens drafted at every step, all accepted."
)
"""On a terminal, of what stands in its tables; the page has all in full."""


def row_words(forecast: Forecast, row: ForecastRow) -> str:
    """Drafter and settings, as the recommendation names them."""
    return line(named(row, forecast.rows), 360)


def record_sentence(forecast: Forecast) -> str:
    """What the forecast is of: `runs/x (run): 80 requests, 49,848 output tokens`."""
    if forecast.origin is None:
        return f"No record: what a trained drafter {'gives' if forecast.given else 'must reach'}"
    return record_words(forecast.origin, forecast.requests, forecast.output_tokens)


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
    whose = "" if forecast.best else f" with {row_words(forecast, row)}"
    doubt = ", undecided" if cell.outcome == "undecided" else ""
    return f"{span(cell.speedup)} decode speedup{whose} at concurrency {forecast.concurrency}{doubt}"


def basis_sentences(forecast: Forecast) -> list[str]:
    """Where the cost of a step, of drafting and of the prefill come from."""
    basis = forecast.basis
    return [
        f"Cost ({basis.source}): {line(basis.words, 1000)}{_plain_step(forecast)}",
        f"Drafting: {line(basis.drafting, 1000)}",
        f"Prefill: {line(basis.prefill, 1000)}",
    ]


def _plain_step(forecast: Forecast) -> str:
    """How long it takes, to be held against the server."""
    plain = next((step for step in forecast.steps if step.k == 0), None)
    if plain is None:
        return ""
    is_exact = plain.total.low == plain.total.high
    said = milliseconds(plain.total.estimate) if is_exact else interval_ms(plain.total)
    return f" A plain step takes {said} ms at concurrency {forecast.concurrency}."


def learned_sentence(forecast: Forecast) -> str:
    """What a trained drafter gives or must reach; empty where the recommendation says it, or nothing does."""
    return line(" ".join(learned_sentences(forecast)), 2000) if forecast.best is not None else ""


def break_even_sentence(forecast: Forecast, row: ForecastRow) -> str:
    """What the row reaches, and what it needs at the forecast's concurrency."""
    needs, reached = at(forecast, row).break_even, row.counters
    said = (
        f"Break-even of {row_words(forecast, row)} at concurrency {forecast.concurrency}: "
        f"{needs.tokens_per_step:.3f} tokens per step (it has {row.tokens_per_step:.3f})"
    )
    if needs.acceptance_rate is None:
        return f"{said}."
    rate = f"an acceptance rate of {share(needs.acceptance_rate)}"
    if needs.acceptance_rate > 1:
        rate = "at its draft share no acceptance rate would do"
    said += f", {rate} (it has {share(reached.acceptance_rate)})"
    if needs.draft_share is None:
        return f"{said}; no draft share would do at its acceptance."
    if any_share_pays(needs):
        return f"{said}; at its acceptance any draft share pays."
    return f"{said}, or a draft share of {share(needs.draft_share)} (it has {share(reached.draft_share)})."


def notes(forecast: Forecast) -> list[str]:
    """All that must be said beside the figures, each once; what the recommendation says is not said again."""
    said = dict.fromkeys((*skipped_sentences(forecast.skipped), *forecast.warnings))
    beware = forecast.best.warnings if forecast.best else ()
    return [line(note, 1000) for note in said if not any(note.endswith(one) for one in beware)]
