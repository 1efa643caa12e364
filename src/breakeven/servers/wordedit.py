"""WordEdit: how one list of words became another, in no more than the pieces that differ, so that it can be
kept without the rest of the words, among which there may be secrets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

_SPACE = re.compile(r"(\s+)")
_BETWEEN = "\0"
"""Between words, as none can hold it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What stood at one place, and what stands there now. Pieces are of words, at their spaces."""

    at: int
    """In the state after."""
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WordEdit:
    """A change of words, and what tells both states."""

    pieces: tuple[Piece, ...]
    digest_before: str
    digest_after: str

    @classmethod
    def between(cls, before: Sequence[str], after: Sequence[str]) -> WordEdit:
        old, new = _split(before), _split(after)
        changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        pieces = (
            Piece(new_first, tuple(old[first:last]), tuple(new[new_first:new_last]))
            for kind, first, last, new_first, new_last in changes
            if kind != "equal"
        )
        return cls(tuple(pieces), digest(before), digest(after))

    def undone(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words before, from those after."""
        pieces = _split(words)
        for piece in reversed(self.pieces):
            pieces[piece.at : piece.at + len(piece.after)] = piece.before
        return _join(pieces)

    def to_json(self) -> dict[str, Any]:
        return {
            "pieces": [[p.at, list(p.before), list(p.after)] for p in self.pieces],
            "digest_before": self.digest_before,
            "digest_after": self.digest_after,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WordEdit:
        pieces = (Piece(at, tuple(before), tuple(after)) for at, before, after in value["pieces"])
        return cls(tuple(pieces), value["digest_before"], value["digest_after"])


def digest(words: Sequence[str]) -> str:
    """Tells one list of words from another."""
    return hashlib.sha256(_BETWEEN.join(words).encode()).hexdigest()


def _split(words: Sequence[str]) -> list[str]:
    pieces: list[str] = []
    for word in words:
        pieces += [*(piece for piece in _SPACE.split(word) if piece), _BETWEEN]
    return pieces


def _join(pieces: Sequence[str]) -> tuple[str, ...]:
    return tuple("".join(pieces).split(_BETWEEN)[:-1])
