"""Parquet, a few rows at a time: only the columns that are used, and lists of integers as arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from breakeven.errors import UsageError
from breakeven.replay.sources.columns import MODELS, NAMES, OUTPUT_IDS, PROMPT_IDS, is_known
from breakeven.replay.sources.rows import Row, Warn
from breakeven.trace.requests_file import UNREADABLE

MAGIC = b"PAR1"
ID_COLUMNS = (*OUTPUT_IDS, PROMPT_IDS)
WORDS = (*NAMES, *MODELS, "category")
BATCH_ROWS = 8
"""Held at once, so that memory is a few times the longest request."""
BUFFER_BYTES = 1 << 20
"""Read from a column at once; without it a whole row group would be."""


class ParquetRows:
    """Rows of a parquet file. Raises UsageError if it is damaged, or holds ids that are no integers."""

    kind: Literal["parquet"] = "parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pa.OSFile(os.fsencode(path), "rb") as file:
                schema = pq.read_schema(file)
        except UNREADABLE as error:
            raise self._damaged(error) from error
        self.columns = tuple(schema.names)
        self._used = [field.name for field in schema if is_known(field.name) or _is_recorded(field.type)]
        for field in schema:
            if field.name in ID_COLUMNS and not (_is_ids(field.type) or _is_empty(field.type)):
                raise UsageError(f"{path}: `{field.name}` holds {field.type}: it must be lists of integers")

    def count(self) -> int | None:
        try:
            with pa.OSFile(os.fsencode(self.path), "rb") as file:
                return int(pq.read_metadata(file).num_rows)
        except UNREADABLE:
            return None

    def read(self, warn: Warn, only: Collection[str] | None = None) -> Iterator[Row]:
        """Raises UsageError for damage."""
        names = [name for name in self._used if only is None or name in only]
        number = 0
        try:
            with pa.OSFile(os.fsencode(self.path), "rb") as file:
                parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
                for batch in parquet.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
                    columns = [self._column(name, batch.column(name)) for name in batch.schema.names]
                    for values in zip(*columns, strict=True):
                        number += 1
                        yield Row(
                            self.path, "row", number, dict(zip(batch.schema.names, values, strict=True))
                        )
        except UNREADABLE as error:
            raise self._damaged(error) from error

    def _column(self, name: str, column: pa.Array) -> list[Any]:
        try:
            return _values(column.cast(pa.string()) if name in WORDS and _is_odd(column.type) else column)
        except Exception as error:  # pyarrow, its pandas and the time zones each raise their own
            raise UsageError(
                f"{self.path}: `{name}` holds {column.type} that cannot be read ({error}): make it text"
            ) from error

    def _damaged(self, error: Exception) -> UsageError:
        return UsageError(f"{self.path} is truncated or damaged ({error}): restore it from a copy")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_ids(kind: pa.DataType) -> bool:
    return _is_list(kind) and bool(pa.types.is_integer(kind.value_type))


def _is_empty(kind: pa.DataType) -> bool:
    """A column in which no record has an integer: the type of all-null, or of only empty, lists."""
    return bool(pa.types.is_null(kind) or (_is_list(kind) and pa.types.is_null(kind.value_type)))


def _is_recorded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and kind.get_field_index("acc_len") >= 0


def _is_odd(kind: pa.DataType) -> bool:
    """A scalar that is neither text nor a plain number, such as a time."""
    types = pa.types
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return not (plain or types.is_null(kind) or types.is_nested(kind))


def _values(column: pa.Array) -> list[Any]:
    """A Python value per row; arrays for lists of integers, also inside recorded acceptance."""
    if _is_ids(column.type):
        return [_array(value) for value in column]
    if _is_recorded(column.type):
        lengths = _values(column.field("acc_len"))
        present = column.is_valid().to_pylist()
        return [{"acc_len": value} if there else None for value, there in zip(lengths, present, strict=True)]
    values: list[Any] = column.to_pylist()
    return values


def _array(value: pa.ListScalar) -> Any:
    """None for null; a Python list if a null is inside, which is refused later, with its place."""
    if not value.is_valid:
        return None
    return value.values.to_numpy() if value.values.null_count == 0 else value.as_py()
