"""TableSource: the rows of a file as recorded requests, with the ids that it holds or made from its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.replay.records import Origin, RecordedRequest
from breakeven.replay.sources.columns import (
    MODELS,
    NAMES,
    OUTPUT_IDS,
    OUTPUT_TEXT,
    PROMPT_IDS,
    TURNS,
    first_of,
    no_known_column,
)
from breakeven.replay.sources.ids import accepted_of, ids_of
from breakeven.replay.sources.rows import Row, Rows, Warn
from breakeven.replay.sources.source import Source
from breakeven.replay.sources.text import texts_of
from breakeven.replay.sources.tokenizer import MAY_DIFFER, Tokeniser
from breakeven.workload.formats import DEFAULT_CATEGORY

NO_PROMPT = "some records have no prompt_token_ids: their drafts look nothing up in the prompt"


class TableSource(Source):
    """Raises UsageError where no column holds an output, or only as text and there is no tokenizer."""

    def __init__(self, rows: Rows, tokeniser: Tokeniser | None) -> None:
        self._rows = rows
        self._tokeniser = tokeniser
        self._ids = first_of(OUTPUT_IDS, rows.columns)
        if self._ids is None:
            self._need_text()
        path = str(rows.path)
        if self._ids is None:
            super().__init__(Origin(path, "text", None, "tokenizer"), (MAY_DIFFER,))
        else:
            super().__init__(Origin(path, rows.kind, None))

    @property
    def expected(self) -> int | None:
        return self._rows.count()

    def _need_text(self) -> None:
        text = first_of((*OUTPUT_TEXT, *TURNS), self._rows.columns)
        if text is None:
            raise no_known_column(self._rows.path, self._rows.columns)
        if self._tokeniser is None:
            raise UsageError(
                f"{self._rows.path} holds text (`{text}`) and no token ids: name the model's tokenizer with "
                "--tokenizer FOLDER, or record the ids"
            )

    def _requests(self) -> Iterator[RecordedRequest]:
        models = _Models(self._warn)
        for row in self._rows.read(self._warn):
            models.see(row)
            request = self._request(row)
            if request is not None:
                yield request

    def _request(self, row: Row) -> RecordedRequest | None:
        pair = self._made_from_text(row) if self._ids is None else self._recorded(row, self._ids)
        if pair is None:
            return None
        prompt, output = pair
        if not len(output):
            self._skip("empty output")
            return None
        return RecordedRequest(
            id=_name(row),
            category=_category(row),
            prompt=prompt,
            output=output,
            max_tokens=_max_tokens(row),
            recorded=_accepted(row, len(output)),
        )

    def _recorded(self, row: Row, column: str) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        if row.columns.get(column) is None:
            self._skip("no token ids")
            return None
        output = ids_of(row.columns[column], row, column)
        if row.columns.get(PROMPT_IDS) is None:
            self._warn(NO_PROMPT)
            prompt = np.zeros(0, np.int32)
        else:
            prompt = ids_of(row.columns[PROMPT_IDS], row, PROMPT_IDS)
        if self._tokeniser is not None:
            self._tokeniser.check(prompt, row)
            self._tokeniser.check(output, row)
        return prompt, output

    def _made_from_text(self, row: Row) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        prompt, output = texts_of(row.columns, row)
        assert self._tokeniser is not None  # noqa: S101  the constructor refuses text without one
        return self._tokeniser.ids(prompt), self._tokeniser.ids(output)


class _Models:
    """Sees to it that one tokenizer made all ids of a file."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._first: dict[str, tuple[str, Row]] = {}

    def see(self, row: Row) -> None:
        """Raises UsageError for a second tokenizer; warns of a second model, which may share it."""
        for column in MODELS:
            name = row.columns.get(column)
            if name is None:
                continue
            first, where = self._first.setdefault(column, (str(name), row))
            if first == str(name):
                continue
            if column == "tokenizer":
                raise UsageError(
                    f"{row}: tokenizer {str(name)!r}, but {first!r} in {where.unit} {where.number}: replay "
                    "the outputs of each as a file of its own"
                )
            self._warn(
                f"outputs of several models, such as {first!r} and {str(name)!r}: do they share a tokenizer?"
            )


def _name(row: Row) -> str:
    column = first_of(NAMES, row.columns)
    value = None if column is None else row.columns[column]
    return row.default_id if value is None else str(value)


def _category(row: Row) -> str:
    value = row.columns.get("category")
    return DEFAULT_CATEGORY if value is None or value == "" else str(value)


def _max_tokens(row: Row) -> int | None:
    value = row.columns.get("max_tokens")
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise UsageError(f"{row}: max_tokens is {value!r}: it must be 1 or more, or absent")
    return value


def _accepted(row: Row, n_output: int) -> Mapping[str, NDArray[np.int32]]:
    """Every column of the form {"acc_len": […]}."""
    return {
        name: accepted_of(value["acc_len"], row, name, n_output)
        for name, value in row.columns.items()
        if isinstance(value, Mapping) and value.get("acc_len") is not None
    }
