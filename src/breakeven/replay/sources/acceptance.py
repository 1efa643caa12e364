"""Acceptance recorded beside token ids: every column of the form {"acc_len": […]}."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.tokens import NOT_RECORDED
from breakeven.errors import UsageError
from breakeven.replay.sources.rows import Row
from breakeven.trace import tokens
from breakeven.units import count


class RecordedAcceptance:
    """Reads these columns, and keeps count of the records in which lengths and output tokens differ."""

    def __init__(self) -> None:
        self._records: Counter[str] = Counter()
        self._fewer: Counter[str] = Counter()
        self._more: Counter[str] = Counter()

    def of(self, row: Row, n_output: int) -> Mapping[str, NDArray[np.int32]]:
        """Draft tokens accepted before each output token, by column; shape (n_output,).

        A recorded length counts the token after the accepted ones too. Lengths beyond the output are cut off;
        where they fall short, NOT_RECORDED stands. Raises UsageError for what is no length.
        """
        return {
            name: self._column(name, value["acc_len"], row, n_output)
            for name, value in row.columns.items()
            if isinstance(value, Mapping) and value.get("acc_len") is not None
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The columns read so far."""
        return tuple(self._records)

    def warnings(self) -> Iterator[str]:
        """One for each column in which some record has another number of lengths than output tokens."""
        for name, records in self._records.items():
            fewer, more = self._fewer[name], self._more[name]
            says = []
            if fewer:
                says.append(
                    f"{fewer:,} of {count(records, 'record')} hold fewer lengths than output tokens, "
                    "where nothing counts as drafted"
                )
            if more:
                says.append(
                    f"{more:,} of {count(records, 'record')} hold more lengths than output tokens, "
                    "which were cut off"
                )
            if says:
                yield f"{name}: {'; '.join(says)}"

    def _column(self, name: str, value: Any, row: Row, n_output: int) -> NDArray[np.int32]:
        lengths = _lengths(value, name, row)
        self._records[name] += 1
        self._fewer[name] += len(lengths) < n_output
        self._more[name] += len(lengths) > n_output
        accepted = np.full(n_output, NOT_RECORDED, np.int32)
        accepted[: len(lengths)] = lengths[:n_output].astype(np.int64) - 1
        return accepted


def _lengths(value: Any, name: str, row: Row) -> NDArray[Any]:
    try:
        lengths = tokens.integers_of(value)
    except ValueError as error:
        raise UsageError(f"{row}: `{name}.acc_len` {error}") from None
    if lengths.size and (lengths.min() < 0 or lengths.max() > tokens.MAX_ID):
        raise UsageError(f"{row}: `{name}.acc_len` holds a length below 0 or beyond {tokens.MAX_ID}")
    return lengths
