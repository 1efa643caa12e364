"""Whether the server's token ids are those of the target's tokenizer: seen on what the replies themselves
say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.eagle.data.target import Decode
from breakeven.errors import UsageError

LOOKED_AT = 256
"""Replies; a tokenizer that agrees on so many agrees."""
TOLD_FROM = 4
"""Replies that differ before the rest is not waited for: some differ by what a server cuts off or parses
away."""
ADVICE = "name the model that the server runs under [target] of the recipe"
Ids = NDArray[np.integer[Any]]


class Spelling:
    """Looks at replies as they come."""

    def __init__(self, decode: Decode | None, model: str, vocabulary: int) -> None:
        """`decode` is None for a target whose tokenizer cannot be read: then only the ids' range is looked
        at."""
        self._decode = decode
        self._model = model
        self._vocabulary = vocabulary
        self._looked_at = self._differ = 0
        self._example = ""

    def in_range(self, where: str, ids: Ids) -> None:
        """Raises UsageError for an id that the target has not."""
        highest = int(np.max(ids, initial=0))
        if highest >= self._vocabulary:
            raise UsageError(
                f"{where}: token id {highest} is beyond the vocabulary of {self._model} "
                f"({self._vocabulary:,}): {ADVICE}"
            )

    def see(self, where: str, ids: Ids, text: str, reasoning: str) -> None:
        """The ids of one reply, and its text. Raises UsageError once most replies differ."""
        if self._decode is None or self._looked_at == LOOKED_AT or not (text.strip() or reasoning.strip()):
            return
        said = self._decode(ids.tolist())
        self._looked_at += 1
        if not all(_letters(part) in _letters(said) for part in (text, reasoning)):
            self._differ += 1
            self._example = f"{where} says {text.strip()[:40]!r}, and its ids {said.strip()[:40]!r}"
        if self._differ >= TOLD_FROM:
            self.close()

    def close(self) -> None:
        """After the last reply. Raises UsageError if most differ."""
        if 2 * self._differ > self._looked_at:
            raise UsageError(
                f"the tokenizer of {self._model} is not the server's: {self._differ} of {self._looked_at} "
                f"replies are spelled otherwise; {self._example}: {ADVICE}"
            )


def _letters(text: str) -> str:
    """Without white space, which servers trim, and marks of characters that a cut reply leaves incomplete."""
    return "".join(text.split()).replace("\ufffd", "")
