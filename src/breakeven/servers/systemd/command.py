"""Command lines of ExecStart= (systemd.service(5), "COMMAND LINES"), kept as they are spelled."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.errors import UsageError
from breakeven.servers.systemd.words import WHITESPACE, Word, next_word

PREFIX_MARKS = "-@:+!|"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. Specifiers and variables stand in its words as in the unit."""

    prefix: str
    """Of PREFIX_MARKS, as spelled: how systemd is to run it."""
    program: Word
    """Without the prefix."""
    name: Word | None
    """What the process is told as its own name, which prefix `@` asks for."""
    arguments: tuple[Word, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        """Program and arguments."""
        return (self.program.value, *(word.value for word in self.arguments))

    @property
    def fills_in_variables(self) -> bool:
        return ":" not in self.prefix

    def text(self) -> str:
        """As a value of ExecStart=."""
        return " ".join(self.spelled())

    def spelled(self) -> tuple[str, ...]:
        """All its words as they stand in a unit."""
        name = (self.name.source,) if self.name else ()
        return (self.prefix + self.program.source, *name, *(word.source for word in self.arguments))

    def with_argv(self, argv: Sequence[str]) -> Command:
        """The same with other words: those of `argv` that it had, in this order, stay spelled as they are,
        and mean what they meant; any other word is meant literally, and is spelled so that systemd reads
        it so. Raises UsageError for a word that cannot be spelled."""
        if not argv:
            raise UsageError("a command line needs at least a program")
        words = self._respelled(argv)
        return Command(self.prefix, words[0], self.name, words[1:])

    def _respelled(self, argv: Sequence[str]) -> tuple[Word, ...]:
        mine = (self.program, *self.arguments)
        words: list[Word] = []
        matcher = difflib.SequenceMatcher(None, self.argv, list(argv), autojunk=False)
        for kind, start, end, new_start, new_end in matcher.get_opcodes():
            if kind == "equal":
                words += mine[start:end]
            elif kind != "delete":
                words += [self._literal(value) for value in argv[new_start:new_end]]
        return tuple(words)

    def _literal(self, value: str) -> Word:
        escaped = value.replace("%", "%%")
        return Word.of(escaped.replace("$", "$$") if self.fills_in_variables else escaped)


def commands(value: str) -> tuple[Command, ...]:
    """What a value of ExecStart= runs: several where a lone `;` is between. Raises UsageError for a value
    that systemd refuses."""
    found: list[Command] = []
    at = 0
    while (first := next_word(value, at)) is not None:
        word, at = first
        if word.value == ";":
            continue
        command, at = _command(word, value, at)
        found.append(command)
    return tuple(found)


def _command(first: Word, value: str, at: int) -> tuple[Command, int]:
    prefix, program = _without_prefix(first)
    words: list[Word] = []
    while at < len(value):
        if _stands_alone(value, at, ";"):
            at += 1
            break
        if _stands_alone(value, at, "\\;"):
            words.append(Word(";", "\\;"))
            at = _after_space(value, at + 2)
            continue
        found = next_word(value, at)
        if found is None:
            break
        words.append(found[0])
        at = found[1]
    name = words.pop(0) if "@" in prefix and words else None
    return Command(prefix, program, name, tuple(words)), at


def _without_prefix(word: Word) -> tuple[str, Word]:
    """Marks and program. Each mark counts once, except `!!`."""
    prefix, rest = "", word.value
    while rest and rest[0] in PREFIX_MARKS and prefix.count(rest[0]) < (2 if rest[0] == "!" else 1):
        prefix, rest = prefix + rest[0], rest[1:]
    if not rest:
        raise UsageError(f"{word.source}: names no program")
    return prefix, Word.of(rest) if prefix else word


def _stands_alone(value: str, at: int, mark: str) -> bool:
    after = at + len(mark)
    return value.startswith(mark, at) and (after == len(value) or value[after] in WHITESPACE)


def _after_space(value: str, at: int) -> int:
    while at < len(value) and value[at] in WHITESPACE:
        at += 1
    return at
