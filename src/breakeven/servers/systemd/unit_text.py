"""Assignments of a unit file, read as systemd reads it (systemd.syntax(7))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

WHITESPACE = " \t\n\r"
COMMENT_MARKS = "#;"
_LINE_END = re.compile(r"\r\n|\n\r|[\n\r\0]")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One setting, continued lines joined, its value without the space around it."""

    section: str
    name: str
    value: str


def assignments(data: bytes) -> tuple[Assignment, ...]:
    """All of a file, in order. What systemd skips is skipped: settings before any section, lines without a
    name or `=`, and lines that are no UTF-8."""
    found: list[Assignment] = []
    section = ""
    for line in _joined(data.decode("utf-8", "surrogateescape")):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        name, equals, value = line.partition("=")
        if section and equals and name and _is_utf8(line):
            found.append(Assignment(section, name.strip(WHITESPACE), value.strip(WHITESPACE)))
    return tuple(found)


def _joined(text: str) -> Iterator[str]:
    """Lines with what continues them, stripped, without comments and empty ones.

    A comment between continued lines is skipped, and does not itself continue; an empty line ends one.
    """
    pending: str | None = None
    for line in _LINE_END.split(text.removeprefix(_BOM)):
        if line.lstrip(WHITESPACE).startswith(tuple(COMMENT_MARKS)):
            continue
        whole = (pending or "") + line
        if _goes_on(whole):
            pending = whole[:-1] + " "
            continue
        pending = None
        if stripped := whole.strip(WHITESPACE):
            yield stripped
    if pending is not None and (stripped := pending.strip(WHITESPACE)):
        yield stripped


def _goes_on(line: str) -> bool:
    """Whether it ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _is_utf8(line: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in line)
