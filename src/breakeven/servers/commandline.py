"""CommandLine: a server's words, and how they are written: as they are, or in a script that a shell gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from breakeven.engines.argv import POSIX_SHELLS
from breakeven.engines.dialects import DIALECTS
from breakeven.errors import UsageError
from breakeven.servers.shellscript import ShellScript, read_script


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What a unit or container says is to be run."""

    words: tuple[str, ...]
    """As written; of `sh -c SCRIPT` the shell, its flags and the script."""
    argv: tuple[str, ...]
    """Of the server itself."""
    script: ShellScript | None = None
    """None where the words are the server's own."""
    place: int = 0
    """Which of the words the script is."""

    def with_argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The words that run `argv` instead, written in the same way."""
        if self.script is None:
            return tuple(argv)
        changed = self.script.with_argv(argv)
        return (*self.words[: self.place], changed, *self.words[self.place + 1 :])


def read_command_line(words: Sequence[str]) -> CommandLine:
    """Raises UsageError for no words, and for a shell script that cannot be changed safely."""
    if not words:
        raise UsageError(
            "no command was found there: it may be in the image only; write it down where it is run"
        )
    place = _script_place(words)
    if place is None:
        return CommandLine(tuple(words), tuple(words))
    script = read_script(words[place], runs_engine)
    return CommandLine(tuple(words), script.argv, script, place)


def runs_engine(argv: Sequence[str]) -> bool:
    """Whether a command line starts an engine that is known."""
    return any(dialect().is_mine(argv) for dialect in DIALECTS)


def _script_place(words: Sequence[str]) -> int | None:
    """Where the script of `sh -c`, `bash -lc` or `sh -e -c` is; None where no shell runs one."""
    if PurePosixPath(words[0]).name not in POSIX_SHELLS:
        return None
    for place, word in enumerate(words[1:], 2):
        if not word.startswith("-") or word.startswith("--"):
            return None
        if "c" in word:
            return place if place < len(words) else None
    return None
