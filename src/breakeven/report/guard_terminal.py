"""A simulated guard on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from breakeven.guard.simulate.records import Simulation
from breakeven.report import guard_figures as figures
from breakeven.report import guard_words as words
from breakeven.report.guard_figures import PolicyRow
from breakeven.report.terminal import NAME_COLUMNS, print_commands, print_grid, say
from breakeven.report.text import line
from breakeven.units import count, duration

GAP = 2
"""Columns between those of a table."""
_LAYOUTS = (
    ("speedup", "of best fixed", "total", "worst", "draft share", "acceptance"),
    ("speedup", "of best fixed", "total", "worst"),
    ("speedup", "total", "worst"),
    ("speedup", "worst"),
)
"""Columns of a table of policies: the first that fit are shown."""
_OF_CATEGORIES = (
    ("guard", "worst", "best fixed", "best there", "test-and-set", "oracle"),
    ("guard", "worst", "best fixed", "best there", "oracle"),
    ("guard", "worst", "best fixed", "best there"),
)
"""The same of a table of categories."""


def print_simulation(made: Simulation, console: Console, report_path: str | None = None) -> None:
    """The guard beside all else that there is, what ε buys, and what qualifies the figures."""
    say(console, words.record_sentence(made), "bold", wrap=False)
    console.print()
    say(console, words.headline(made), "bold")
    console.print()
    _print_policies("policy", figures.policies(made, named=False), console)
    say(console, f"Worst request of the guard: {words.worst_words(made.guard)}.", "dim")
    for sentence in words.sentences(made):
        say(console, sentence)
    _print_categories(made, console)
    _print_epsilons(made, console)
    _print_fixed(made, console)
    _print_by_concurrency(made, console)
    console.print()
    for sentence in words.basis_sentences(made):
        say(console, sentence)
    for note in words.notes(made):
        say(console, f"! {note}", "yellow")
    say(console, words.IN_SHORT, "dim")
    say(console, f"Took {duration(made.elapsed_s)}.")
    if report_path is not None:
        say(console, f"Report: {line(report_path, 500)}", wrap=False)
    print_commands(made.next_commands, console)


def _print_policies(first: str, rows: Sequence[PolicyRow], console: Console) -> None:
    _print_fitting(first, _LAYOUTS, {row.name: _cells(row) for row in rows}, console)


def _print_fitting(
    first: str, layouts: Sequence[Sequence[str]], rows: Mapping[str, Mapping[str, str]], console: Console
) -> None:
    """With as many columns as there is room for; in none a paragraph for each row."""
    names = max(NAME_COLUMNS, *map(len, (first, *rows)))
    for layout in layouts:
        cells = {name: tuple(row[header] for header in layout) for name, row in rows.items()}
        widths = [max(map(len, column)) for column in zip(layout, *cells.values(), strict=True)]
        if names + sum(widths) + GAP * len(widths) <= console.width:
            break
    print_grid(first, layout, cells, console)


def _cells(row: PolicyRow) -> dict[str, str]:
    """By column."""
    return {
        "speedup": row.speedup,
        "of best fixed": row.of_best_fixed,
        "total": row.total,
        "worst": row.worst,
        "draft share": row.draft_share,
        "acceptance": row.acceptance,
    }


def _print_categories(made: Simulation, console: Console) -> None:
    rows = figures.categories(made)
    if not rows:
        return
    console.print()
    cells = {
        row.name: {
            "guard": row.guard,
            "worst": row.worst,
            "best fixed": row.best_fixed,
            "best there": row.best_fixed_here,
            "test-and-set": row.test_and_set,
            "oracle": row.oracle,
        }
        for row in rows
    }
    _print_fitting("category", _OF_CATEGORIES, cells, console)
    if made.fixed:
        say(console, "best there: the fixed setting that is best in that category", "dim")


def _print_epsilons(made: Simulation, console: Console) -> None:
    if made.by_epsilon:
        console.print()
        _print_policies("guard with ε", figures.by_epsilon(made), console)


def _print_fixed(made: Simulation, console: Console) -> None:
    if not made.fixed:
        return
    console.print()
    shown = figures.fixed(made, figures.BEST_FIXED)
    _print_policies("fixed", shown, console)
    if further := len(made.fixed) - len(shown):
        say(
            console,
            f"{count(further, 'further setting')}: --html, --json; the last row is the slowest.",
            "dim",
        )


def _print_by_concurrency(made: Simulation, console: Console) -> None:
    rows = list(figures.by_concurrency(made))
    if not rows:
        return
    console.print()
    headers = ("guard", "worst", "total", "drafted", "best fixed", "its worst")
    cells = {
        row.concurrency: (row.guard, row.worst, row.total, row.drafted, row.best_fixed, row.fixed_worst)
        for row in rows
    }
    print_grid("concurrency", headers, cells, console)
