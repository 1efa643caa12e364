"""Reasons of several places told once: those that differ in their figures only are one reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

BY_FIRST = ", by the figures of the first"
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Reason:
    """What holds of all the places, in the words of the first."""

    words: str
    places: tuple[str, ...]
    """Such as the name of a side, or a concurrency."""
    is_exact: bool
    """All of the places give the same figures."""

    def told(self, where: str) -> str:
        """`baseline and candidate, by the figures of the first: the client fell behind: …`."""
        return f"{where}{'' if self.is_exact or len(self.places) < 2 else BY_FIRST}: {self.words}"


def kind(reason: str) -> str:
    """The reason without its figures."""
    return _FIGURE.sub("0", reason)


def gathered(told: Iterable[tuple[str, Iterable[str]]]) -> tuple[Reason, ...]:
    """Each reason once, in the order in which they come. `told` holds places with their reasons."""
    found: dict[str, Reason] = {}
    for place, reasons in told:
        for words in reasons:
            known = found.setdefault(kind(words), Reason(words, (), True))
            places = tuple(dict.fromkeys((*known.places, place)))
            found[kind(words)] = Reason(known.words, places, known.is_exact and words == known.words)
    return tuple(found.values())
