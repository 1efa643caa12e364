"""Command lines as lists of words: which options stand where, and what is left without some of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, TypeVar

from breakeven.errors import UsageError

T = TypeVar("T", int, str)
Takes = Literal["none", "one", "maybe"]
"""Values of an option: none, one, or one if the next word is no option."""
Known = Callable[[str], Takes | None]
"""What an option of this name takes; None for one that is not looked for."""

POSIX_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
"""Whose small scripts read alike."""
SHELLS = POSIX_SHELLS | {"ksh", "fish", "busybox"}
_NO_VALUE = {"one": "--", "maybe": "-"}
"""What the value of an option does not begin with."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NUMBERS = re.compile(r"\d+")
_UNTAGGED = re.compile(r"0\.[01](\.0)?\.dev")
_HYPHENS = re.compile(r"^--[^.=]*")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*(?:[-.]?(?:a|b|rc|dev|post)\d*)*(?:\+[\w.]+)?|b\d+(?:-\w+)?", re.ASCII)
"""Of Python packages, and of llama.cpp's builds."""


@dataclass(frozen=True, slots=True)
class Given:
    """An option that a command line gives: words[start:stop]."""

    name: str
    """As it is looked for: `-` for `_` in a long name, up to its first point."""
    value: str | None
    start: int
    stop: int

    def text(self) -> str:
        """Its value. Raises UsageError where it has none."""
        if self.value is None:
            raise UsageError(f"{self.name} stands without a value: type one after it, or leave it out")
        return self.value

    def number(self) -> int:
        """Raises UsageError for what is no whole number."""
        try:
            return int(self.text())
        except ValueError:
            raise UsageError(f"{self.name} takes a whole number, not {self.value!r}") from None


def given(words: Sequence[str], start: int, known: Known, joined: bool = True) -> list[Given]:
    """The known options from words[start] on, in their order; `joined`: --name=value is one too."""
    return list(_given(words, start, known, joined))


def _given(words: Sequence[str], start: int, known: Known, joined: bool) -> Iterator[Given]:
    at = start
    while at < len(words):
        name, separator, value = words[at].partition("=") if joined else (words[at], "", "")
        name = hyphened(name)
        takes = known(name) if name.startswith("-") else None
        if takes is None or separator:
            if takes is not None:
                yield Given(name, value, at, at + 1)
            at += 1
            continue
        follows = takes != "none" and at + 1 < len(words) and not words[at + 1].startswith(_NO_VALUE[takes])
        stop = at + 2 if follows else at + 1
        yield Given(name, words[at + 1] if follows else None, at, stop)
        at = stop


def hyphened(name: str) -> str:
    """A long option's name with `-` for `_`, up to its first point: engines take both."""
    return _HYPHENS.sub(lambda found: found[0].replace("_", "-"), name)


def without(words: Sequence[str], found: Sequence[Given]) -> tuple[str, ...]:
    """The words that belong to none of these options."""
    gone = {at for one in found for at in range(one.start, one.stop)}
    return tuple(word for at, word in enumerate(words) if at not in gone)


def last_value(words: Sequence[str], start: int, *names: str, joined: bool = True) -> str | None:
    """The value of the last of these options; None where there is none with a value."""
    found = given(words, start, lambda name: "one" if name in names else None, joined)
    return next((one.value for one in reversed(found) if one.value), None)


def program(word: str) -> str:
    """A word's last part as a path, without .exe."""
    return PurePath(word).name.removesuffix(".exe")


def after_module(words: Sequence[str], modules: Sequence[str]) -> int | None:
    """Where the arguments of `python -m MODULE`, or of the module's file, begin."""
    files = tuple(module.replace(".", "/") + ".py" for module in modules)
    for at, word in enumerate(words):
        if (at > 0 and words[at - 1] == "-m" and word in modules) or word.endswith(files):
            return at + 1
    return None


def after_program(words: Sequence[str], names: Sequence[str], verbs: Sequence[str] = ()) -> int | None:
    """Where the arguments of one of these programs begin; with `verbs`, of one of its subcommands."""
    for at, word in enumerate(words):
        if program(word) in names:
            if not verbs:
                return at + 1
            if at + 1 < len(words) and words[at + 1] in verbs:
                return at + 2
    return None


def set_for(words: Sequence[str], start: int, outer: Mapping[str, str]) -> dict[str, str]:
    """Variables of the program whose arguments begin at words[start]: those of `env NAME=VALUE …` count."""
    inner = (word.partition("=") for word in words[:start] if _ASSIGNMENT.match(word))
    return {**outer, **{name: value for name, _, value in inner}}


def port_number(text: str, name: str) -> int:
    """Raises UsageError for what is no port."""
    if text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 2**16:
        return int(text)
    raise UsageError(f"{name} {text!r} is no port: type a number from 1 to 65535")


def version_numbers(version: str | None) -> tuple[int, ...] | None:
    """(0, 9, 2) for 0.9.2.dev140+g8b6e1d; None for no version, or one that counts none, as of a build that
    does not know its own: b0-unknown, or 0.1.dev9321+g8b6e1d of a clone without tags (setuptools-scm)."""
    release = (version or "").partition("+")[0].lstrip("vb")
    if _UNTAGGED.match(release):
        return None
    numbers = tuple(int(number) for number in _NUMBERS.findall(release)[:3])
    return numbers if any(numbers) else None


def is_older(version: str | None, than: tuple[int, ...]) -> bool:
    """An unknown version is taken for a new one."""
    numbers = version_numbers(version)
    return numbers is not None and numbers < than


def is_newer(version: str | None, than: str) -> bool:
    """Whether a version is above one, as far as that one counts; one that counts none may be. An unknown
    version is not."""
    if version is None:
        return False
    numbers, known = version_numbers(version), version_numbers(than) or ()
    return numbers is None or numbers[: len(known)] > known


def readable_version(text: str) -> str:
    """Raises UsageError for what is no version, with an example."""
    if _VERSION.fullmatch(text):
        return text
    raise UsageError(
        f"{text!r} is no version that can be read: type one with its numbers, such as  --engine-version "
        "0.32.0 , or b8942 of llama.cpp; or leave it out for a new one"
    )


def scalar(word: str) -> Any:
    """A value as JSON has it; text that is none stays text."""
    try:
        return json.loads(word)
    except ValueError:
        return word


def take(kind: type[T], name: str, settings: dict[str, Any]) -> T | None:
    """A setting, taken out; None where there is none. Raises UsageError for one of another type."""
    value = settings.pop(name, None)
    if value is not None and type(value) is not kind:
        wanted = "a whole number" if kind is int else "text"
        raise UsageError(f"{name} is {value!r}: it must be {wanted}")
    return value
