"""ShellScript: the one command of a small shell script, such as that of `sh -c`, read and changed in place.

No shell is run and no script is written anew: words of the command are taken out or put in, and every other
character stays as its author wrote it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from breakeven.errors import UsageError
from breakeven.secrets import masked_text

_TOKEN = re.compile(
    r"""
    (?P<space> (?: [ \t] | \\\n )+ )
    | (?P<comment> \# [^\n]* )
    | (?P<end> \n | && | \|\| | ; | \| | & (?! > ) | [()] )
    | (?P<redirect> [0-9]* (?: >> | >& | <& | &> | > | < (?! < ) ) )
    | (?P<word> (?: [^\s'"\\;&|<>()`$] | \\[^\n] | '[^']*'
                  | "(?: [^"\\`$] | \\(?s:.) | \$(?!\() )*" | \$(?!\() )+ )
    """,
    re.VERBOSE,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands in the script."""

    value: str
    """Without its quotes; variables as they stand."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A script and the words of its command that matters."""

    text: str
    words: tuple[Word, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.value for word in self.words)

    def with_argv(self, argv: Sequence[str]) -> str:
        """The script with those words instead; the ones that stay are as they were written."""
        text = self.text
        changes = SequenceMatcher(None, self.argv, list(argv), autojunk=False).get_opcodes()
        for kind, first, last, new_first, new_last in reversed(changes):
            if kind != "equal":
                added = "".join(f" {shlex.quote(word)}" for word in argv[new_first:new_last])
                start, end = self._span(first, last)
                text = text[:start] + added + text[end:]
        return text

    def _span(self, first: int, last: int) -> tuple[int, int]:
        """From the end of the word before, so that the space between goes with what is taken out."""
        start = self.words[first - 1].end if first else self.words[0].start
        return start, self.words[last - 1].end if last > first else start


def read_script(text: str, is_server: Callable[[Sequence[str]], bool]) -> ShellScript:
    """The script with its first command that `is_server`, or else its last one.

    Raises UsageError for a script with substitutions, here-documents or no command at all.
    """
    commands = [words for words in (_arguments(command) for command in _commands(text)) if words]
    if not commands:
        raise UsageError(f"the shell script {masked_text(text)!r} holds no command")
    servers = [words for words in commands if is_server([word.value for word in words])]
    return ShellScript(text, tuple((servers or commands[-1:])[0]))


def _commands(text: str) -> list[list[Word]]:
    """Words of each simple command, without redirections and what follows them."""
    commands: list[list[Word]] = [[]]
    position, redirected = 0, False
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise UsageError(
                f"the shell script cannot be changed safely from its character {position + 1} on, "
                f"{text[position : position + 2]!r}: "
                "give the container its command as a list of words"
            )
        position = token.end()
        if token.lastgroup == "end":
            commands.append([])
            redirected = False
        elif token.lastgroup == "redirect":
            redirected = True
        elif token.lastgroup == "word" and not redirected:
            commands[-1].append(Word(_value(token.group()), token.start(), token.end()))
    return commands


def _value(raw: str) -> str:
    return shlex.split(raw)[0]


def _arguments(words: list[Word]) -> list[Word]:
    """Without `exec` and the assignments before the program."""
    index = 0
    while index < len(words) and (words[index].value == "exec" or _ASSIGNMENT.match(words[index].value)):
        index += 1
    return words[index:]
