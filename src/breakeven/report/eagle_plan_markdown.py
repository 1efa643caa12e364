"""The plan of an EAGLE-3 head as Markdown: next-steps-eagle.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from breakeven.eagle.plan.records import Plan
from breakeven.report import eagle_plan_words as words
from breakeven.report.eagle_plan_sections import Section, Table, sections
from breakeven.report.text import line
from breakeven.trace.files import storing, write_bytes_atomically

PAGE = "next-steps-eagle.md"
"""A name for it."""


def plan_markdown(plan: Plan) -> str:
    """The decision and its grounds first, then what they rest on, and what to type."""
    return "\n".join(
        (*_decision(plan), *(text for one in sections(plan) for text in _section(one)), *_end(plan))
    )


def write_plan(plan: Plan, path: Path) -> None:
    """Replaces the file as a whole. Raises StorageError."""
    data = plan_markdown(plan).encode()
    with storing(path.parent):
        write_bytes_atomically(path, data)


def _decision(plan: Plan) -> Iterator[str]:
    yield f"# {_plain(words.title(plan))}"
    yield ""
    yield f"Wanted: a speedup of {plan.asked.goal:.2f}× in decoding at concurrency {plan.concurrency}."
    yield ""
    for one in plan.reasons:
        yield f"- **{words.HEADLINES[one.outcome]}, {one.topic}:** {_plain(one.words)}."
    for said in plan.not_judged:
        yield f"- Not judged, as it was not said: {said}."
    yield ""
    if said := words.first(plan):
        yield _plain(said)
        yield ""


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield ""
    for sentence in section.sentences:
        yield _plain(sentence)
        yield ""
    if section.table is not None:
        yield from _table(section.table)
        yield ""
    for remark in section.remarks:
        yield f"- {_plain(remark)}"
    if section.remarks:
        yield ""


def _table(table: Table) -> Iterator[str]:
    for row in (table.headers, ("---",) * len(table.headers), *table.rows):
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"


def _end(plan: Plan) -> Iterator[str]:
    if plan.next_commands:
        yield from ("## Next", "", "```", *(line(command, 1000) for command in plan.next_commands), "```", "")
    if plan.warnings:
        yield from ("## To be kept in mind", "", *(f"- {_plain(said)}" for said in plan.warnings), "")


def _plain(text: str) -> str:
    """One harmless line in which Markdown marks nothing up."""
    said = line(text, 2000)
    for mark in ("\\", "|", "*", "_", "`", "<", "["):
        said = said.replace(mark, f"\\{mark}")
    return said
