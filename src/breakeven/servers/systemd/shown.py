"""Units and command lines as a human sees them: secrets hidden, one option a line."""

from __future__ import annotations

from collections.abc import Iterable

from breakeven.errors import UsageError
from breakeven.secrets import HIDDEN, masked_argv
from breakeven.servers.argv_diff import lines_diff
from breakeven.servers.systemd.command import Command, commands
from breakeven.servers.systemd.unit_text import Assignment, assignments
from breakeven.servers.systemd.words import quote, split


def unit(data: bytes) -> str:
    """A unit file's settings without its comments, which may hold anything."""
    lines: list[str] = []
    section = ""
    for one in assignments(data):
        if one.section != section:
            section = one.section
            lines.append(f"[{section}]")
        lines.append(f"{one.name}={_value(one)}")
    return "\n".join(lines) + "\n"


def _value(one: Assignment) -> str:
    if one.name.startswith("SetCredential") and one.value:
        return HIDDEN
    try:
        if one.name.startswith("Exec"):
            return " ; ".join(_masked(command).text() for command in commands(one.value))
        if one.name == "Environment":
            words = [word.value for word in split(one.value)]
            return " ".join(quote(word) for word in masked_argv(words))
    except UsageError:
        return HIDDEN
    return one.value


def _masked(command: Command) -> Command:
    """Spelled as it is but for its secrets."""
    hidden = masked_argv(command.argv)
    return command if hidden == command.argv else command.with_argv(hidden)


def diff(unit_name: str, before: Command, after: Command, path: str) -> str:
    """How the effective command line changes, one option a line."""
    return lines_diff(_lines(before), _lines(after), f"{unit_name} as it is", f"{unit_name} with {path}")


def _lines(command: Command) -> list[str]:
    """An option begins a line, and what follows it stays beside it."""
    words = iter(_masked(command).spelled())
    lines = [f"ExecStart={next(words)}"]
    for word in words:
        if word.startswith("-"):
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def running_words(words: Iterable[str]) -> str:
    """A process's command line in one line."""
    return " ".join(quote(word) for word in masked_argv(tuple(words)))
