"""A diagnosis on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from rich.console import Console

from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.diagnose.evidence import Evidence, Setting
from breakeven.report import diagnose_tables as tables
from breakeven.report import diagnose_words as words
from breakeven.report import explain_words
from breakeven.report.explain_terminal import (
    print_findings,
    print_observations,
    print_unknown,
    print_waterfall,
)
from breakeven.report.explain_words import bounds_words
from breakeven.report.terminal import new_grid, print_grid, say
from breakeven.report.text import line
from breakeven.units import ABSENT, ratio

BAR_COLUMNS, FEW_BAR_COLUMNS = 20, 10
"""Of the share 1, on a terminal with room and without."""
ROOM_FOR_BARS = 70
BAR = "━"
SHOWN_SETTINGS = 6
"""Of those replayed beside the server's own; all are in --json."""


def print_diagnosis(made: Diagnosis, console: Console) -> None:
    """The answer, what it rests on, the findings, and what is not known."""
    evidence = made.evidence
    say(console, line(words.answer(made), 2000), "bold")
    console.print()
    say(console, line(words.heading(evidence), 300), wrap=False)
    for sentence in words.log_sentences(evidence):
        say(console, line(sentence, 300))
    _print_acceptance(evidence, console)
    _print_steps(evidence, console)
    _print_replay(evidence, console)
    _print_explanation(evidence, console)
    print_findings("Findings, most telling first", made.findings, console)
    if evidence.explanation is not None:
        print_findings("Ruled out by the arithmetic", evidence.explanation.ruled_out, console)
    print_unknown(made.unknown, console)
    for note in words.notes(made):
        say(console, f"! {line(note, 1000)}", "yellow")


def _print_acceptance(evidence: Evidence, console: Console) -> None:
    console.print()
    source = words.one_source(evidence)
    if source:
        say(console, line(f"By {source}:", 300))
    for one in evidence.stated:
        said = words.stated_sentence(one, with_source=source is None)
        say(console, line(f"{said[0].upper()}{said[1:]}", 500), "" if one.value else "dim")
    for other in evidence.other_sources:
        say(console, line(words.other_sentence(other), 500), "dim")
    found = tables.positions(evidence)
    if not found:
        sentence = tables.no_positions(evidence)
        say(console, line(f"{sentence[0].upper()}{sentence[1:]}", 500), "dim")
        return
    grid = new_grid("position", ("accepted", "share"))
    grid.add_column("", no_wrap=True)
    columns = BAR_COLUMNS if console.width >= ROOM_FOR_BARS else FEW_BAR_COLUMNS
    for each in found:
        grid.add_row(str(each.number), *_position(each, columns))
    console.print(grid)
    say(console, f"share = {words.DEFINITIONS['by_position']}", "dim")


def _position(one: tables.Position, columns: int) -> tuple[str, str, str]:
    """How many drafts, their share, and a bar of it."""
    counted = ABSENT if one.accepted is None else f"{one.accepted:,}"
    if one.share is None:
        return counted, ABSENT, ""
    bar = BAR * round(columns * min(one.share.estimate, 1.0))
    return counted, bounds_words((one.share.low, one.share.high)), bar


def _print_steps(evidence: Evidence, console: Console) -> None:
    rows = {line(name, 24): cells for name, *cells in tables.steps(evidence)}
    said = [sentence for sentence in (words.live_step(evidence), words.live_load(evidence)) if sentence]
    if rows or said:
        console.print()
    if rows:
        heads = ("TPOT without", "with", "change", "step with")
        shown = slice(len(heads)) if evidence.explanation is None else slice(0, None, 3)
        cells = {name: tuple(each[shown]) for name, each in rows.items()}
        print_grid("ms", heads[shown], cells, console)
        say(console, f"step with = {words.DEFINITIONS['step_with']}", "dim")
    for sentence in said:
        say(console, line(sentence, 500))


def _print_replay(evidence: Evidence, console: Console) -> None:
    ratios = {name: tuple(each) for name, *each in tables.against_replay(evidence)}
    if evidence.replayed is None or not ratios:
        return
    console.print()
    say(console, "What the drafter should have given, by a replay of the recorded tokens")
    heads = ("server", f"replay, {tables.setting_words(evidence.replayed.as_set)}")
    print_grid("", heads, ratios, console)
    if others := evidence.replayed.others[:SHOWN_SETTINGS]:
        _print_settings(others, console)


def _print_settings(others: tuple[Setting, ...], console: Console) -> None:
    """What other windows and n-grams would have given."""
    priced = any(one.cost_per_token is not None for one in others)
    heads = ("tokens/step", "acceptance", "draft share", "cost")[: 4 if priced else 3]
    rows = {tables.setting_words(one): _setting_cells(one)[: len(heads)] for one in others}
    print_grid("others", heads, rows, console)
    if priced:
        say(console, f"cost = {words.DEFINITIONS['cost_per_token']}", "dim")


def _setting_cells(one: Setting) -> tuple[str, ...]:
    names = ("tokens_per_step", "acceptance_rate", "draft_share")
    ratios = (tables.plain(name, tables.replayed_ratio(one.acceptance, name)) for name in names)
    return (*ratios, ratio(one.cost_per_token))


def _print_explanation(evidence: Evidence, console: Console) -> None:
    made = evidence.explanation
    if made is None:
        return
    console.print()
    sentences = (
        None if made.refused else explain_words.answer(made),
        explain_words.unexplained_sentence(made),
        explain_words.explained_sentence(made),
        explain_words.verify_sentence(made),
    )
    for sentence in filter(None, sentences):
        say(console, line(sentence, 1000))
    print_waterfall(made, console)
    print_observations(made.explained, console)
