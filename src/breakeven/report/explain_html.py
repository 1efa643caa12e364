"""An explanation as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.explain.records import Explained, Explanation, Finding, Part
from breakeven.interval import Interval
from breakeven.report import explain_plots as plots
from breakeven.report import explain_words as words
from breakeven.report.bars import Bars, part_words
from breakeven.report.curves import Chart
from breakeven.report.definitions import DEFINITIONS, Definition
from breakeven.report.explain_json import explain_json
from breakeven.report.plots import interval_text
from breakeven.report.standalone import render, write_page
from breakeven.report.text import line
from breakeven.units import ABSENT, change, milliseconds, share

MAX_DRAWN = 20
"""Observations that have a plot; all are in the table."""
EXPLAIN_DEFINITIONS = (
    *(Definition(key, key.replace("_", " ").capitalize(), text) for key, text in words.DEFINITIONS.items()),
    *(one for one in DEFINITIONS if one.key in ("tpot", "acceptance_rate", "draft_share")),
)
"""Terms of an explanation, its own first."""


def write_explain_html(explanation: Explanation, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    write_page(explain_page(explanation), path)


def explain_page(explanation: Explanation) -> str:
    """The page's HTML, with the figures of `explain_json` as data."""
    return render("explain.html.j2", _context(explanation), explain_json(explanation))


def _context(explanation: Explanation) -> dict[str, Any]:
    explained = explanation.explained
    return {
        **_words(explanation),
        "k": explanation.k,
        "observed": [_observed(one) for one in explained],
        "parts": [_part(part) for part in explanation.waterfall],
        "drawn": [_drawn(one) for one in explained[:MAX_DRAWN]],
        "drawn_left_out": max(0, len(explained) - MAX_DRAWN),
        "findings": _findings(explanation.findings),
        "ruled_out": _findings(explanation.ruled_out),
        "refused": explanation.refused is not None,
    }


def _words(explanation: Explanation) -> dict[str, Any]:
    left_over = words.unexplained_sentence(explanation), words.explained_sentence(explanation)
    return {
        "heading": line(words.heading(explanation), 300),
        "answer": line(words.answer(explanation), 1000),
        "left_over": [line(sentence, 1000) for sentence in left_over if sentence],
        "verifying": words.verify_sentence(explanation),
        "unknown": [(line(name, 100), line(how, 1000)) for name, how in words.notes(explanation.unknown)],
        "notes": [line(note, 1000) for note in dict.fromkeys(explanation.warnings)],
        "definitions": EXPLAIN_DEFINITIONS,
    }


@dataclass(frozen=True, slots=True)
class Observed:
    name: str
    baseline_ms: str
    candidate_ms: str
    outcome: str
    change: str
    acceptance: str
    draft_share: str
    predicted: str
    """Speedup over all draft shares above 0."""
    unexplained_ms: str
    when: str
    """What the least of it assumes."""


def _observed(one: Explained) -> Observed:
    seen, observed = one.observation, one.observed_speedup
    return Observed(
        line(seen.name, 60),
        milliseconds(seen.baseline_tpot_s),
        milliseconds(seen.candidate_tpot_s),
        "faster" if observed > 1 else "slower" if observed < 1 else "same",
        change(observed),
        words.bounds_words(seen.acceptance_rate),
        words.bounds_words(seen.draft_share),
        _predicted(one),
        plots.unexplained_ms(one),
        line(one.unexplained_at_least_when, 300),
    )


def _predicted(one: Explained) -> str:
    speedups = [each.speedup for each in one.predictions if each.draft_share > 0]
    if not speedups:
        return ABSENT
    low, high = min(speedup.low for speedup in speedups), max(speedup.high for speedup in speedups)
    return words.speedup_words(Interval(low, low, high))


def _part(part: Part) -> tuple[str, str, str, str]:
    """Name, ms of a plain step, ms added, and where both come from."""
    plain, added = words.ms(part.baseline_s), words.span_ms(part.added_s)
    return part_words(part.name), plain, added, line(part.source, 300)


@dataclass(frozen=True, slots=True)
class Drawn:
    name: str
    bars: Bars
    shares: Chart | None
    predictions: tuple[tuple[str, str], ...]
    """Draft share, speedup with its interval."""


def _drawn(one: Explained) -> Drawn:
    predictions = tuple((share(each.draft_share), interval_text(each.speedup)) for each in one.predictions)
    return Drawn(
        line(one.observation.name, 60), plots.taken_apart(one), plots.by_draft_share(one), predictions
    )


@dataclass(frozen=True, slots=True)
class FindingRow:
    title: str
    evidence: str
    confidence: str
    ms: str
    next_command: str
    check: str


def _findings(findings: Sequence[Finding]) -> list[FindingRow]:
    return [
        FindingRow(
            line(one.title, 300),
            line(one.evidence, 1000),
            one.confidence,
            ABSENT if one.step_s is None else " to ".join(map(words.ms, one.step_s)),
            line(one.next_command, 1000),
            line(one.check, 1000),
        )
        for one in findings
    ]
