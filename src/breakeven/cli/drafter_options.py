"""Settings of a drafter as options: by name with --set, by short names for the usual ones, as lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from breakeven.drafters.settings import WORDS
from breakeven.errors import UsageError
from breakeven.report.replay_words import value_words

TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
RANGE = ("min_n", "max_n")
"""Both are N where --n is given to a drafter that has no n."""
MOST_NUMBERS = 1024
"""In one range: each is replayed on its own."""


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers and ranges of them: 1-8,12,16."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        found: dict[int, None] = {}
        for low, high in _ranges(self, value, "1-16 or 1,2,4,8", param, ctx):
            if high - low >= MOST_NUMBERS:
                self.fail(
                    f"{low}-{high} is more than {MOST_NUMBERS} numbers: type {low}-{low + 15}", param, ctx
                )
            found.update(dict.fromkeys(range(low, high + 1)))
        return tuple(found)


class Ranges(click.ParamType):  # type: ignore[type-arg]
    """Pairs of a shortest and a longest n-gram: 2-4,3-5."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[int, int], ...]:
        return tuple(_ranges(self, value, "2-4,3-5", param, ctx))


def _ranges(
    kind: click.ParamType,  # type: ignore[type-arg]
    text: str,
    example: str,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> Iterator[tuple[int, int]]:
    for word in text.split(","):
        low, dash, high = word.strip().partition("-")
        ends = (low, high if dash else low)
        if not all(end.isascii() and end.isdecimal() and 0 < int(end) < 2**31 for end in ends):
            kind.fail(f"{word!r} is no number above 0, nor a range of them: type {example}", param, ctx)
        if int(ends[0]) > int(ends[1]):
            kind.fail(f"{word!r} runs backwards: type {ends[1]}-{ends[0]}", param, ctx)
        yield int(ends[0]), int(ends[1])


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
    name, separator, word = text.partition("=")
    if not separator or not name:
        raise UsageError(f"--set {text!r} is not NAME=VALUE: type --set {next(iter(specs), 'k')}=…")
    if name not in specs:
        raise UsageError(f"{drafter} has no setting {name}: it has {', '.join(specs) or 'none'}")
    return name, _value(name, word, specs[name])


def _value(name: str, word: str, spec: Field[Any]) -> Any:
    """The word as the setting's type; where that is not known, as what it looks like."""
    kind = _kind(spec)
    if kind not in WORDS:
        return _guess(word)
    if spec.default is None and word.lower() == "none":
        return None
    try:
        return TRUTHS[word.lower()] if kind is bool else kind(word)
    except (KeyError, ValueError):
        raise UsageError(
            f"--set {name}={word}: it is {WORDS[kind]}: type --set {name}={value_words(spec.default)}"
        ) from None


def _kind(spec: Field[Any]) -> Any:
    """The type of a setting's values: that which `setting` has noted, else that of the default."""
    plain = None if spec.default is MISSING else type(spec.default)
    return spec.metadata.get("kind", plain)


def _guess(word: str) -> Any:
    if word.lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return TRUTHS.get(word.lower(), word)
