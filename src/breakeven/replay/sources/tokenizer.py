"""Tokeniser: text → token ids, by a tokenizer.json of the `tokenizers` library."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import MissingExtra, UsageError

FILE = "tokenizer.json"
MAY_DIFFER = "text was tokenised again: the ids may differ from those that the model generated"


class Tokeniser:
    """A tokenizer.json, or the folder of a model that has one. Raises MissingExtra or UsageError."""

    def __init__(self, path: str | Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtra("tokenizers", "replay") from error
        self.path = Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for no such user
        file = self.path / FILE if self.path.is_dir() else self.path
        if not file.is_file():
            raise UsageError(f"there is no {file}: name a model's {FILE}, or the folder that holds it")
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises no narrower class
            raise UsageError(f"{file} is no tokenizer ({error}): name a model's {FILE}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @property
    def vocabulary(self) -> int:
        """How many ids there are."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def ids(self, text: str) -> NDArray[np.int32]:
        """Without special tokens around it."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    def check(self, ids: NDArray[np.int32], where: object) -> None:
        """Raises UsageError for an id that this tokenizer does not have."""
        if ids.size and ids.max() >= self.vocabulary:
            raise UsageError(
                f"{where}: token id {ids.max()} is beyond the vocabulary of {self.path} ({self.vocabulary}): "
                "name the tokenizer of the model that was recorded, or none"
            )
