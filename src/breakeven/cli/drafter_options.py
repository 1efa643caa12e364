"""Settings of a drafter as options: by name with --set, by short names for the usual ones, as lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from breakeven.drafters.naming import value_words
from breakeven.drafters.settings import MOST, WORDS, shown
from breakeven.errors import UsageError

TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
RANGE = ("min_n", "max_n")
"""Both are N where --n is given to a drafter that has no n."""
MOST_NUMBERS = 1024
"""In one list: each is replayed on its own."""
LONGEST_SHOWN = 40


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers and ranges of them: 1-8,12,16. Raises UsageError for what is none, or for too many."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        instead = _instead(param, "1-5")
        found: dict[int, None] = {}
        for low, high in _ranges(value, param, instead):
            if high - low < MOST_NUMBERS:
                found.update(dict.fromkeys(range(low, high + 1)))
            if high - low >= MOST_NUMBERS or len(found) > MOST_NUMBERS:
                raise UsageError(f"{shown(value)} is more than {MOST_NUMBERS} numbers: {instead}")
        return tuple(found)


class Ranges(click.ParamType):  # type: ignore[type-arg]
    """Pairs of a shortest and a longest n-gram: 2-4,3-5. Raises UsageError as Numbers does."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[int, int], ...]:
        instead = _instead(param, "2-4,3-5")
        found = dict.fromkeys(_ranges(value, param, instead))
        if len(found) > MOST_NUMBERS:
            raise UsageError(f"{shown(value)} is more than {MOST_NUMBERS} ranges: {instead}")
        return tuple(found)


def _instead(param: click.Parameter | None, example: str) -> str:
    return f"type {param.opts[0]} {example}" if param else f"type {example}"


def _ranges(text: str, param: click.Parameter | None, instead: str) -> Iterator[tuple[int, int]]:
    for word in text.split(","):
        low, dash, high = word.strip().partition("-")
        ends = (low, high if dash else low)
        if not all(map(_is_number, ends)):
            raise UsageError(f"{shown(word)} is no number from 1 to {MOST}, nor a range of them: {instead}")
        if int(ends[0]) > int(ends[1]):
            raise UsageError(f"{shown(word)} runs backwards: {_instead(param, f'{ends[1]}-{ends[0]}')}")
        yield int(ends[0]), int(ends[1])


def _is_number(word: str) -> bool:
    """The length is looked at first: Python refuses to read very many digits."""
    return word.isascii() and word.isdecimal() and len(word) <= len(str(MOST)) and 0 < int(word) <= MOST


def drafter_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the options say of the drafter's settings, those of --set as the type that they have there.

    Raises UsageError for a setting that the drafter has not, is given twice, or cannot be read.
    """
    from breakeven.drafters.registry import drafter_class

    specs = {spec.name: spec for spec in fields(drafter_class(values["drafter"]).Config)}
    given = [(name, values[name]) for name in ("k", "min_n", "max_n") if values[name] is not None]
    if values["n"] is not None:
        single = "n" in specs or not set(RANGE) <= specs.keys()
        given += [(name, values["n"]) for name in (("n",) if single else RANGE)]
    given += [_set(text, specs, values["drafter"]) for text in values["setting"]]
    settings: dict[str, Any] = {}
    for name, value in given:
        if name in settings:
            raise UsageError(f"{name} is given twice: leave out one of them")
        settings[name] = value
    return settings


def _set(text: str, specs: Mapping[str, Field[Any]], drafter: str) -> tuple[str, Any]:
    from breakeven.drafters.registry import no_setting

    name, separator, word = text.partition("=")
    if not separator or not name:
        raise UsageError(f"--set {shown(text)} is not NAME=VALUE: type --set {next(iter(specs), 'k')}=…")
    if name not in specs:
        raise no_setting(drafter, name, specs)
    return name, _value(name, word, specs[name])


def _value(name: str, word: str, spec: Field[Any]) -> Any:
    """The word as the setting's type; where that is not known, as what it looks like."""
    kind = _kind(spec)
    if kind not in WORDS:
        return _guess(word)
    if spec.default is None and word.lower() == "none":
        return None
    try:
        return _read(word, kind, limited="high" in spec.metadata)
    except (KeyError, ValueError):
        clipped = word if len(word) <= LONGEST_SHOWN else f"{word[:LONGEST_SHOWN]}…"
        raise UsageError(
            f"--set {name}={clipped}: it is {WORDS[kind]}: type --set {name}={value_words(spec.default)}"
        ) from None


def _read(word: str, kind: type, limited: bool = False) -> Any:
    """Raises KeyError or ValueError for what is none, or, where no limits are checked later, a number that
    no 64 bits hold."""
    if kind is bool:
        return TRUTHS[word.lower()]
    value = kind(word)
    if kind in (int, float) and not limited and not abs(value) < 2**63:
        raise ValueError(word)
    return value


def _kind(spec: Field[Any]) -> Any:
    """The type of a setting's values: that which `setting` has noted, else that of the default."""
    plain = None if spec.default is MISSING else type(spec.default)
    return spec.metadata.get("kind", plain)


def _guess(word: str) -> Any:
    if word.lower() == "none":
        return None
    for kind in (int, float):
        try:
            return _read(word, kind)
        except ValueError:
            continue
    return TRUTHS.get(word.lower(), word)
