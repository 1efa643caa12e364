"""requests.parquet: a request per row, a row group at a time.

A module of its own: whoever reads no requests, such as a guard in a server, needs no pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from breakeven.errors import RunFormatError

GROUP_EVENTS = 65_536
"""A row group ends once it holds so many events or token ids, …"""
GROUP_ROWS = 4_096
"""… or so many rows, …"""
GROUP_CHARACTERS = 8_000_000
"""… or so much text: some 20 MB of Python objects at most, whatever the run's length."""

_COUNTS = pa.list_(pa.int64())
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("prompt_id", pa.string(), nullable=False),
        pa.field("category", pa.string(), nullable=False),
        pa.field("repeat", pa.int64(), nullable=False),
        pa.field("block", pa.int64(), nullable=False),
        pa.field("max_tokens", pa.int64(), nullable=False),
        pa.field("scheduled_ns", pa.int64()),
        pa.field("connect_ns", pa.int64()),
        pa.field("sent_ns", pa.int64(), nullable=False),
        pa.field("end_ns", pa.int64(), nullable=False),
        pa.field("event_read_ns", _COUNTS, nullable=False),
        pa.field("event_read_id", _COUNTS, nullable=False),
        pa.field("event_kind", pa.list_(pa.int8()), nullable=False),
        pa.field("event_n_tokens", _COUNTS, nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("reasoning", pa.string(), nullable=False),
        pa.field("tool_calls", pa.string(), nullable=False),
        pa.field("finish_reason", pa.string()),
        pa.field("usage", pa.string()),
        pa.field("prompt_token_ids", _COUNTS),
        pa.field("output_token_ids", _COUNTS),
        pa.field(
            "speculation",
            pa.struct(
                [
                    pa.field("steps", pa.int64()),
                    pa.field("drafts", pa.int64()),
                    pa.field("drafted_tokens", pa.int64()),
                    pa.field("accepted_tokens", pa.int64()),
                    pa.field("accepted_per_position", _COUNTS),
                    pa.field("source", pa.string()),
                    pa.field("emitted_tokens", pa.int64()),
                ]
            ),
        ),
        pa.field("server_timings", pa.string()),
        pa.field(
            "error",
            pa.struct(
                [
                    pa.field("kind", pa.string()),
                    pa.field("message", pa.string()),
                    pa.field("status", pa.int64()),
                ]
            ),
        ),
        pa.field("warnings", pa.list_(pa.string()), nullable=False),
    ]
)
"""`usage` and `server_timings` are JSON text, as the server sent them."""

_INT64 = np.iinfo(np.int64)
_RISING = ("event_read_ns", "event_read_id")
"""Their differences are small: delta encoding."""
_REPEATING = ["prompt_id", "category", "finish_reason"]
"""Few distinct values: dictionary encoding."""

UNREADABLE = (OSError, ValueError, pa.ArrowException)
"""What damage inside a parquet file comes out as; a ValueError where text is no UTF-8."""


class Requests(Protocol):
    """Rows of requests, wherever they are kept."""

    def __len__(self) -> int: ...

    def rows(self) -> Iterator[Mapping[str, Any]]: ...


def write_requests(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows into a parquet file, a row group at a time. Raises OSError; use it through write_atomically.

    Files are opened by the bytes of their names, here and below: names need not be UTF-8.
    """
    encoding = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in _RISING}
    with (
        pa.OSFile(os.fsencode(path), "wb") as file,
        pq.ParquetWriter(
            file,
            SCHEMA,
            compression="zstd",
            use_dictionary=_REPEATING,
            column_encoding=encoding,
            write_statistics=False,
        ) as writer,
    ):
        for group in _groups(rows):
            writer.write_table(_table(group))


def _table(group: list[Mapping[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(group, schema=SCHEMA)
    except (pa.ArrowInvalid, OverflowError):
        return pa.Table.from_pylist(_clamp(group), schema=SCHEMA)


def _clamp(value: Any) -> Any:
    """Integers cut to 64 bits: a server may send any number as a token id or a count."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(_INT64.min, min(value, _INT64.max))
    if isinstance(value, Mapping):
        return {name: _clamp(item) for name, item in value.items()}
    return [_clamp(item) for item in value] if isinstance(value, list) else value


def _groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    group: list[Mapping[str, Any]] = []
    numbers = characters = 0
    for row in rows:
        group.append(row)
        numbers += (
            len(row["event_read_ns"])
            + len(row["output_token_ids"] or ())
            + len(row["prompt_token_ids"] or ())
        )
        characters += len(row["text"]) + len(row["reasoning"]) + len(row["tool_calls"])
        if numbers >= GROUP_EVENTS or len(group) >= GROUP_ROWS or characters >= GROUP_CHARACTERS:
            yield group
            group, numbers, characters = [], 0, 0
    if group:
        yield group


def open_requests(path: Path) -> Requests:
    """The rows of a parquet file. Raises RunFormatError if it is truncated or foreign."""
    return _ParquetRequests(path)


class _ParquetRequests:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with pa.OSFile(os.fsencode(path), "rb") as file, pq.ParquetFile(file) as requests:
                self._metadata = requests.metadata
                names = set(requests.schema_arrow.names)
        except UNREADABLE as error:
            raise _damaged(path) from error
        missing = [name for name in SCHEMA.names if name not in names]
        if missing:
            raise RunFormatError(f"{path} was not written by breakeven: it lacks {', '.join(missing)}")

    def __len__(self) -> int:
        return int(self._metadata.num_rows)

    def rows(self) -> Iterator[Mapping[str, Any]]:
        try:
            with pa.OSFile(os.fsencode(self._path), "rb") as file, pq.ParquetFile(file) as requests:
                for group in range(requests.num_row_groups):
                    yield from requests.read_row_group(group, columns=SCHEMA.names).to_pylist()
        except UNREADABLE as error:
            raise _damaged(self._path) from error


def _damaged(path: Path) -> RunFormatError:
    return RunFormatError(f"{path} is truncated or damaged: restore it from a copy, or measure again")
