"""The plan of an EAGLE-3 head on a terminal, readable without colour and at 60 columns."""

from __future__ import annotations

from rich.console import Console

from breakeven.eagle.plan.records import Plan
from breakeven.report import eagle_plan_sections as parts
from breakeven.report import eagle_plan_words as words
from breakeven.report.eagle_plan_sections import Section
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line

_STYLES = {"go": "bold green", "no-go": "bold red", "undecided": "bold yellow"}


def print_plan(plan: Plan, console: Console, path: str | None = None) -> None:
    """The decision, its grounds, and the figures that they rest on; sources are in the Markdown and JSON."""
    say(console, words.title(plan), _STYLES[plan.outcome])
    console.print()
    for one in plan.reasons:
        say(console, f"{words.HEADLINES[one.outcome]}, {one.topic}: {line(one.words, 2000)}.")
    for said in plan.not_judged:
        say(console, f"Not judged, as it was not said: {said}.", "dim")
    if said := words.first(plan):
        console.print()
        say(console, line(said, 1000), "bold")
    for section in (
        parts.acceptance(plan, every=False),
        parts.data(plan),
        parts.hours(plan),
        parts.memory(plan),
        parts.layers(plan),
    ):
        _print_section(section, console)
    _print_end(plan, path, console)


def _print_section(section: Section, console: Console) -> None:
    console.print()
    say(console, section.title, "bold")
    if section.table is not None:
        rows = {row[0]: row[1:] for row in section.table.rows}
        print_grid(section.table.headers[0], section.table.headers[1:], rows, console)
    for remark in (*section.sentences, *section.remarks):
        say(console, line(remark, 1000), "dim")


def _print_end(plan: Plan, path: str | None, console: Console) -> None:
    console.print()
    for warning in plan.warnings:
        say(console, f"! {line(warning, 1000)}", "yellow")
    if path is None:
        say(
            console,
            "Published runs, all concurrencies, assumptions and sources: --out FILE.md, --json",
            "dim",
        )
    else:
        say(console, f"Plan: {line(path, 500)}", wrap=False)
    for command in plan.next_commands:
        say(console, f"Next: {line(command, 1000)}", wrap=False)
