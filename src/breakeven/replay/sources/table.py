"""TableSource: the rows of a file as recorded requests, with the ids that it holds or made from its text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.tokens import UNLIMITED
from breakeven.errors import UsageError
from breakeven.replay.records import Origin, RecordedRequest
from breakeven.replay.sources.acceptance import RecordedAcceptance
from breakeven.replay.sources.columns import (
    MODELS,
    NAMES,
    OUTPUT_IDS,
    OUTPUT_TEXT,
    PROMPT_IDS,
    TURNS,
    first_of,
    no_known_column,
    no_tokenizer,
)
from breakeven.replay.sources.ids import ids_of
from breakeven.replay.sources.rows import Row, Rows, Warn
from breakeven.replay.sources.source import Source
from breakeven.replay.sources.text import texts_of
from breakeven.replay.sources.tokenizer import MAY_DIFFER, Tokeniser
from breakeven.trace.tokens import shown
from breakeven.workload.formats import DEFAULT_CATEGORY

NO_PROMPT = "some records have no prompt_token_ids: their drafts look nothing up in the prompt"


class TableSource(Source):
    """The ids of each record, whichever known column holds them; text only where no record has ids.

    Raises UsageError where no column holds an output, or only as text and there is no tokenizer.
    """

    def __init__(self, rows: Rows, tokeniser: Tokeniser | None) -> None:
        self._rows = rows
        self._tokeniser = tokeniser
        self._acceptance = RecordedAcceptance()
        self._from_text = self._holds_only_text()
        path = str(rows.path)
        if self._from_text:
            super().__init__(Origin(path, "text", None, "tokenizer"), (MAY_DIFFER,))
        else:
            super().__init__(Origin(path, rows.kind, None))

    @property
    def acceptance_warnings(self) -> tuple[str, ...]:
        return tuple(self._acceptance.warnings())

    @property
    def acceptance_columns(self) -> tuple[str, ...]:
        return self._acceptance.names

    @property
    def expected(self) -> int | None:
        return self._rows.count()

    def _holds_only_text(self) -> bool:
        """Reads up to the first record with ids, which for files with ids is soon."""
        seen = dict.fromkeys(self._rows.columns)
        warned: list[str] = []
        for row in self._rows.read(warned.append, OUTPUT_IDS):
            if first_of(OUTPUT_IDS, row.columns) is not None:
                return False
            seen.update(dict.fromkeys(row.columns))
        if not seen:
            raise UsageError("; ".join([f"{self._rows.path} holds no whole record", *warned]))
        text = next((name for name in (*OUTPUT_TEXT, *TURNS) if name in seen), None)
        if text is None and seen.keys().isdisjoint(OUTPUT_IDS):
            raise no_known_column(self._rows.path, seen)
        if text is not None and self._tokeniser is None:
            raise no_tokenizer(self._rows.path, text)
        return text is not None

    def _requests(self) -> Iterator[RecordedRequest]:
        models, acceptance = _Models(self._warn), RecordedAcceptance()
        self._acceptance = acceptance
        for row in self._rows.read(self._warn):
            models.see(row)
            request = self._request(row, acceptance)
            if request is not None:
                yield request

    def _request(self, row: Row, acceptance: RecordedAcceptance) -> RecordedRequest | None:
        pair = self._made_from_text(row) if self._from_text else self._recorded(row)
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
            max_tokens=_limit(row, "max_tokens"),
            max_model_len=_limit(row, "max_model_len"),
            recorded=acceptance.of(row, len(output)),
        )

    def _recorded(self, row: Row) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        column = first_of(OUTPUT_IDS, row.columns)
        if column is None:
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
            name = _word(row, column)
            if name is None:
                continue
            first, where = self._first.setdefault(column, (name, row))
            if first == name:
                continue
            if column == "tokenizer":
                raise UsageError(
                    f"{row}: tokenizer {name!r}, but {first!r} in {where.unit} {where.number}: replay "
                    "the outputs of each as a file of its own"
                )
            self._warn(
                f"outputs of several models, such as {first!r} and {name!r}: do they share a tokenizer?"
            )


def _name(row: Row) -> str:
    column = first_of(NAMES, row.columns)
    return row.default_id if column is None else _word(row, column) or row.default_id


def _category(row: Row) -> str:
    return _word(row, "category") or DEFAULT_CATEGORY


def _word(row: Row, column: str) -> str | None:
    """Text, or a number as text. Raises UsageError for what is neither."""
    value = row.columns.get(column)
    if not isinstance(value, str | int | float | None):
        raise UsageError(f"{row}: `{column}` is {shown(value)}: it must be text or a number")
    return None if value is None else str(value)


def _limit(row: Row, column: str) -> int | None:
    """A limit beyond UNLIMITED is none."""
    value = row.columns.get(column)
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise UsageError(f"{row}: {column} is {shown(value)}: it must be 1 or more, or absent")
    return min(value, UNLIMITED)
