"""A replay or a sweep on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from breakeven.acceptance import counters
from breakeven.replay.records import Replay, Sweep
from breakeven.report import replay_figures as figures
from breakeven.report import replay_words as words
from breakeven.report.definitions import REPLAY_DEFINITIONS, texts
from breakeven.report.replay_figures import Setting
from breakeven.report.replay_next import Next, after_replay, after_sweep
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line
from breakeven.units import count, duration

MAX_POSITIONS = 12
WIDE_COLUMNS = 80
"""Of a terminal that has room for the table of a sweep."""


def print_replay(replay: Replay, console: Console, report: str | None = None) -> None:
    """The answer, what it is made of, and everything that qualifies it; `report` is where the page is."""
    say(console, words.record_sentence(replay), "bold", wrap=False)
    say(console, f"{line(replay.drafter)} {words.settings_words(replay.settings)}".rstrip())
    console.print()
    say(console, words.answer(replay), "bold")
    say(console, words.counts_sentence(replay))
    _say_if(console, words.warm_up_sentence(replay))
    _print_positions(replay, console)
    _print_categories(replay, console)
    _print_parts(replay, console)
    _print_definitions(
        ("tokens_per_step", "draft_share", "acceptance_rate", "mean_acceptance_length"), console
    )
    console.print()
    _say_if(console, words.per_position_sentence(replay))
    if replay.total.counters.drafts:
        say(console, words.flags_sentence(replay.drafter, replay.flags), wrap=False)
    _print_qualifiers(replay, console)
    _print_end(replay, after_replay(replay), report, console)


def _say_if(console: Console, sentence: str | None) -> None:
    if sentence:
        say(console, sentence)


def _print_positions(replay: Replay, console: Console) -> None:
    table = figures.positions(replay.total, MAX_POSITIONS)
    if not table:
        return
    console.print()
    rows = {one.name: (one.drafted, one.accepted, one.share) for one in table}
    print_grid("place in draft", ("drafted", "accepted", "share"), rows, console)
    if further := figures.places(replay.total) - len(table):
        left = count(further, "further place")
        say(console, f"{left} in --html and --json", "dim")


def _print_categories(replay: Replay, console: Console) -> None:
    table = figures.categories(replay.by_category)
    if not table:
        return
    console.print()
    rows = {one.name: (one.requests, one.tokens_per_step, one.acceptance, one.draft_share) for one in table}
    print_grid("category", ("requests", "tokens/step", "acceptance", "draft share"), rows, console)


def _print_parts(replay: Replay, console: Console) -> None:
    if not replay.total.counters.steps:
        return
    console.print()
    rows = {
        one.name: (one.steps, one.accepted_per_step, one.acceptance, one.draft_share)
        for one in figures.parts(replay.total)
    }
    print_grid("of the output", ("steps", "accepted/step", "acceptance", "draft share"), rows, console)
    _say_if(console, figures.parts_sentence(replay.total))


def _print_definitions(keys: tuple[str, ...], console: Console) -> None:
    console.print()
    for key in keys:
        say(console, f"{key.replace('_', ' ')} = {counters.DEFINITIONS[key]}", "dim")


def _print_qualifiers(record: Replay | Sweep, console: Console) -> None:
    for sentence in words.meaning(record):
        say(console, sentence)
    say(console, words.first_token_sentence(record.first_token))
    say(console, words.PAYS)
    for note in dict.fromkeys((*words.skipped_sentences(record.skipped), *record.warnings)):
        say(console, f"! {line(note, 1000)}", "yellow")


def _print_end(record: Replay | Sweep, then: Next | None, report: str | None, console: Console) -> None:
    say(console, f"Took {duration(record.elapsed_s)}.")
    if then is not None:
        say(console, f"Next: {line(then.command, 1000)}", wrap=False)
        if then.note:
            say(console, then.note, "dim")
    if report is not None:
        say(console, f"Report: {line(report, 500)}", wrap=False)


def print_sweep(sweep: Sweep, console: Console, report: str | None = None) -> None:
    """The best settings as a table, the answer, and everything that qualifies it."""
    say(console, words.record_sentence(sweep), "bold", wrap=False)
    console.print()
    table = figures.settings(sweep)
    shown = list(figures.shortlist(table))
    if console.width < WIDE_COLUMNS:
        _print_stacked(shown, console)
    else:
        console.print(_wide_table(shown))
    if further := len(table) - sum(1 + row.alike for row in shown):
        left = count(further, "further setting")
        say(console, f"{left} in --html and --json; the best of every drafter is above", "dim")
    say(console, f"* is on the Pareto front: {texts(REPLAY_DEFINITIONS)['pareto']}", "dim")
    _print_definitions(("tokens_per_step", "acceptance_rate", "draft_share"), console)
    console.print()
    for index, sentence in enumerate(figures.best_sentences(sweep, table)):
        say(console, sentence, "" if index else "bold")
    if words.too_little_sentence(sweep) is None:
        say(console, words.flags_sentence(sweep.suggested.drafter, sweep.suggested.flags), wrap=False)
    _print_qualifiers(sweep, console)
    _print_end(sweep, after_sweep(sweep), report, console)


def _wide_table(shown: list[Setting]) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column("drafter", no_wrap=True)
    grid.add_column("settings", overflow="fold")
    for header in ("tokens/\nstep", "accept-\nance", "drafted/\nstep", "draft\nshare"):
        grid.add_column(header, justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True)
    for row in shown:
        grid.add_row(*map(Text, _cells(row)))
    return grid


def _cells(row: Setting) -> tuple[str, ...]:
    figures_of_row = (row.tokens_per_step, row.acceptance, row.drafted_per_step, row.draft_share)
    return (row.drafter, _settings(row), *figures_of_row, "*" if row.pareto else "")


def _settings(row: Setting) -> str:
    return f"{row.settings} and {row.alike} alike".lstrip() if row.alike else row.settings


def _print_stacked(shown: list[Setting], console: Console) -> None:
    for row in shown:
        say(console, f"{row.drafter} {_settings(row)}{' *' if row.pareto else ''}", "bold")
        say(console, f"  {row.tokens_per_step} tokens/step, acceptance {row.acceptance}")
        say(console, f"  {row.drafted_per_step} drafted/step, draft share {row.draft_share}")
