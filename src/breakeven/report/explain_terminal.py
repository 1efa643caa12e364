"""An explanation on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from breakeven.explain.records import Explained, Explanation, Finding, Part
from breakeven.report import explain_words as words
from breakeven.report.bars import part_words
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line
from breakeven.units import change, milliseconds

WITH_SOURCES = 110
"""Columns of a terminal that has room for where each part's figures come from, beside them."""
SHOWN_SHARES, FEW_SHARES = (0.1, 0.5, 1.0), (0.1, 1.0)
"""Draft shares whose predictions are shown, with room and without; all are in --json and on the page."""
ROOM_FOR_SHARES = 92
"""Columns."""
INDENT = "   "


def print_explanation(made: Explanation, console: Console, report: str | None = None) -> None:
    """The answer, what it is made of, what could cause the rest, and what is not known."""
    say(console, line(words.answer(made), 1000), "bold magenta" if made.refused else "bold")
    for sentence in (words.unexplained_sentence(made), words.explained_sentence(made)):
        if sentence:
            say(console, line(sentence, 1000), "bold")
    say(console, words.verify_sentence(made))
    console.print()
    say(console, line(words.heading(made), 300), wrap=False)
    print_waterfall(made, console)
    print_observations(made.explained, console)
    print_findings("What could cause the rest, most telling first", made.findings, console)
    print_findings("Ruled out by the arithmetic", made.ruled_out, console)
    print_unknown(made.unknown, console)
    for note in made.warnings:
        say(console, f"! {line(note, 1000)}", "yellow")
    if made.refused:
        say(console, f"! {line(made.refused, 1000)}", "bold magenta")
    if report is not None:
        say(console, f"Report: {line(report, 500)}", wrap=False)


def print_waterfall(made: Explanation, console: Console) -> None:
    """The plain step in parts, and what verifying adds to each."""
    parts = made.waterfall
    wide = console.width >= WITH_SOURCES
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column("ms of a step", no_wrap=True)
    grid.add_column("plain", justify="right", no_wrap=True)
    grid.add_column(f"verifying {made.k} adds", justify="right", no_wrap=True)
    if wide:
        grid.add_column("from")
    for part in parts:
        grid.add_row(*_part_cells(part), *([Text(part.source, style="dim")] if wide else []))
    grid.add_row(*map(Text, _sum_cells(made)), style="bold")
    console.print(grid)
    if len(made.explained) > 1:
        say(console, "The plain step is the mean of those below", "dim")
    if not wide:
        for part in parts:
            if part.added_s.high > 0:
                say(console, f"{_name(part)}: {part.source}", "dim")
    console.print()


def _name(part: Part) -> str:
    return "rest" if part.name == "rest" else part_words(part.name)


def _part_cells(part: Part) -> list[Text]:
    added = part.added_s
    shown = f"+{words.span_ms(added)}" if added.high > 0 else words.span_ms(added)
    return [Text(_name(part)), Text(words.ms(part.baseline_s)), Text(shown if added.high else "0")]


def _sum_cells(made: Explanation) -> tuple[str, str, str]:
    parts = made.waterfall
    plain = sum(part.baseline_s for part in parts)
    low, high = (sum(getattr(part.added_s, end) for part in parts) for end in ("low", "high"))
    ends = words.ms(low), words.ms(high)
    return "sum", words.ms(plain), f"+{ends[0]}" if ends[0] == ends[1] else f"+{' to '.join(ends)}"


def print_observations(explained: Sequence[Explained], console: Console) -> None:
    """What was measured, predicted and left over, by observation."""
    shares = SHOWN_SHARES if console.width >= ROOM_FOR_SHARES else FEW_SHARES
    speeds = {
        _label(one): (_tpots(one), change(one.observed_speedup), *_predicted(one, shares))
        for one in explained
    }
    heads = [f"at {each:.0%}".replace("%", " %") for each in shares]
    print_grid("prompts", ("TPOT ms", "observed", *heads), speeds, console)
    say(console, f"{heads[0]}: predicted where that share of steps drafts, least and most", "dim")
    console.print()
    rests = {_label(one): _rest_cells(one) for one in explained}
    print_grid("prompts", ("acceptance", "draft share", "unexplained ms/step"), rests, console)
    for formula in words.FORMULAS:
        say(console, formula, "dim")


def _label(one: Explained) -> str:
    return line(one.observation.name, 24)


def _tpots(one: Explained) -> str:
    seen = one.observation
    return f"{milliseconds(seen.baseline_tpot_s)} → {milliseconds(seen.candidate_tpot_s)}"


def _rest_cells(one: Explained) -> tuple[str, str, str]:
    seen, unexplained = one.observation, " to ".join(map(words.ms, one.unexplained_s))
    return words.bounds_words(seen.acceptance_rate), words.bounds_words(seen.draft_share), unexplained


def _predicted(one: Explained, shares: Sequence[float]) -> tuple[str, ...]:
    by_share = {each.draft_share: each.speedup for each in one.predictions}
    return tuple(f"{_percent(by_share[at].low)} … {_percent(by_share[at].high)}" for at in shares)


def _percent(speedup: float) -> str:
    percent = round((speedup - 1) * 100)
    return f"{'−' if percent < 0 else '+'}{abs(percent)} %"


def print_findings(title: str, findings: Sequence[Finding], console: Console) -> None:
    """Nothing where there are none."""
    if not findings:
        return
    console.print()
    say(console, title, "bold")
    for number, one in enumerate(findings, 1):
        ms = f", up to {one.step_s[1] * 1e3:.1f} ms a step" if one.step_s else ""
        say(console, f"{number}. {line(one.title, 300)} (confidence {one.confidence}{ms})")
        _say_indented(f"{_capital(line(one.evidence, 1000)).rstrip('.')}.", console)
        if one.next_command:
            say(console, f"{INDENT}Check: {line(one.next_command, 500)}", wrap=False)
        _say_indented(line(one.check, 500), console)


def _capital(sentence: str) -> str:
    """As a sentence begins, unless it does with a name or a number."""
    first = sentence.partition(" ")[0]
    return sentence[0].upper() + sentence[1:] if first.isalpha() and first.islower() else sentence


def _say_indented(words: str, console: Console) -> None:
    for wrapped in Text(words).wrap(console, console.width - len(INDENT)):
        say(console, INDENT + wrapped.plain.rstrip())


def print_unknown(unknown: Mapping[str, str], console: Console) -> None:
    """What is not known, by input, and what to type."""
    if not unknown:
        return
    console.print()
    say(console, "Not known, and what would settle it", "bold")
    for name, sentence in words.notes(unknown):
        say(console, f"- {line(name, 100)}: {line(sentence, 500)}")
