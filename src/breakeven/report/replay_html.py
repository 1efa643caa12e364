"""A replay, and a sweep, as one self-contained page each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.replay.records import Replay, RequestReplay, Sweep
from breakeven.report import replay_figures as figures
from breakeven.report import replay_plots as plots
from breakeven.report import replay_words as words
from breakeven.report.definitions import REPLAY_DEFINITIONS
from breakeven.report.replay_json import replay_json, sweep_json
from breakeven.report.replay_next import Next, after_replay, after_sweep
from breakeven.report.standalone import KeyFigure, render, write_page
from breakeven.report.text import line
from breakeven.units import count, duration, share

MAX_REQUESTS = 200
MAX_SETTINGS = 500
MAX_PLACES = 100
"""Rows of a table; all are in the JSON."""


def write_replay_html(replay: Replay, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    write_page(replay_page(replay), path)


def write_sweep_html(sweep: Sweep, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    write_page(sweep_page(sweep), path)


def replay_page(replay: Replay) -> str:
    """The page's HTML, with the figures of `replay_json` as data; of the requests, those in its table."""
    data = replay_json(replay)
    data["per_request"] = [_without_lengths(one) for one in data["per_request"][:MAX_REQUESTS]]
    return render("replay.html.j2", _replay_context(replay), data)


def _without_lengths(request: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key != "accepted_lengths"}


def sweep_page(sweep: Sweep) -> str:
    """The page's HTML, with the figures of `sweep_json` as data."""
    return render("sweep.html.j2", _sweep_context(sweep), sweep_json(sweep))


def _context(record: Replay | Sweep, then: Next | None, flags: str) -> dict[str, Any]:
    notes = (
        *words.meaning(record),
        words.first_token_sentence(record.first_token),
        words.PAYS,
        *words.skipped_sentences(record.skipped),
        *record.warnings,
    )
    return {
        "record": words.record_sentence(record),
        "took": duration(record.elapsed_s),
        "flags": line(flags, 1000),
        "next": then,
        "notes": [line(note, 1000) for note in dict.fromkeys(notes)],
        "definitions": REPLAY_DEFINITIONS,
    }


def _replay_context(replay: Replay) -> dict[str, Any]:
    total = replay.total
    return {
        **_context(replay, after_replay(replay), replay.flags),
        "per_position": words.per_position_sentence(replay),
        "drafted": bool(total.counters.drafts),
        "drafter": line(replay.drafter, 100),
        "settings": words.settings_words(replay.settings),
        "headline": words.headline(total.tokens_per_step),
        "explanation": words.explanation(replay),
        "key_figures": list(_key_figures(replay)),
        "warm_up": words.warm_up_sentence(replay),
        "positions": figures.positions(total, MAX_PLACES),
        "places_left_out": max(0, figures.places(total) - MAX_PLACES),
        "categories": figures.categories(replay.by_category),
        "parts": figures.parts(total) if total.counters.steps else [],
        "parts_note": figures.parts_sentence(total),
        "histogram": plots.histogram(total),
        "requests": [_request(one) for one in replay.requests[:MAX_REQUESTS]],
        "requests_left_out": max(0, len(replay.requests) - MAX_REQUESTS),
    }


def _key_figures(replay: Replay) -> Iterator[KeyFigure]:
    counters = replay.total.counters
    yield KeyFigure("tokens_per_step", "Tokens per step", words.decimal(replay.total.tokens_per_step))
    yield KeyFigure("acceptance_rate", "Acceptance rate", share(counters.acceptance_rate))
    yield KeyFigure("draft_share", "Draft share", share(counters.draft_share))
    mean = words.decimal(counters.mean_acceptance_length)
    yield KeyFigure("mean_acceptance_length", "Mean acceptance length", mean)
    yield KeyFigure("", "Steps", f"{counters.steps:,}")
    yield KeyFigure("", "Drafts", f"{counters.drafts:,}")
    yield KeyFigure("", "Drafted tokens", f"{counters.drafted_tokens:,}")
    yield KeyFigure("", "Accepted tokens", f"{counters.accepted_tokens:,}")
    yield KeyFigure("emitted_tokens", "Emitted tokens", f"{replay.total.emitted_tokens:,}")


@dataclass(frozen=True, slots=True)
class RequestRow:
    id: str
    category: str
    output_tokens: str
    tokens_per_step: str
    acceptance: str
    draft_share: str


def _request(one: RequestReplay) -> RequestRow:
    counters = one.counters
    return RequestRow(
        line(one.id, 60),
        line(one.category, 40),
        f"{one.output_tokens:,}",
        words.per_step(one.emitted_tokens, counters),
        share(counters.acceptance_rate),
        share(counters.draft_share),
    )


def _sweep_context(sweep: Sweep) -> dict[str, Any]:
    best, is_worth_it = sweep.suggested, words.too_little_sentence(sweep) is None
    table = figures.settings(sweep)
    return {
        **_context(sweep, after_sweep(sweep), best.flags if is_worth_it else ""),
        "best": words.row_words(best),
        "is_worth_it": is_worth_it,
        "headline": f"Up to {words.headline(sweep.rows[0].tokens_per_step)}",
        "answers": figures.best_sentences(sweep, table),
        "rows": table[:MAX_SETTINGS],
        "rows_left_out": max(0, len(table) - MAX_SETTINGS),
        "settings_count": count(len(table), "setting"),
        "maps": plots.heat_maps(sweep),
        "scatter": plots.scatter(sweep),
    }
