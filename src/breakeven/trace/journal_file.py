"""journal.jsonl, read: a row per line, the last line of an id wins, and a torn last line is no line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from breakeven.errors import RunFormatError


@dataclass(frozen=True, slots=True)
class JournalScan:
    """What a journal holds."""

    last: Mapping[str, int]
    """Offset in bytes of the last line of each request id."""
    failed: frozenset[str]
    """Ids whose last line is a failure."""
    repeated: frozenset[str]
    """Ids with more than one line."""
    size: int
    """Bytes up to the end of the last whole line."""
    last_ns: int
    """The latest end of a request."""


def lines(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(start, end, row) of every whole line. Raises RunFormatError if any but the last is damaged.

    A line without an end is torn, or being written now: then what is read next would be its rest.
    """
    start, damaged = 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            if damaged:
                raise RunFormatError(f"{path}, line {damaged} is damaged: remove that line, or measure again")
            row = _row(line)
            if row is None:
                damaged = number
            else:
                yield start, start + len(line), row
                start += len(line)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return (
        row
        if isinstance(row, dict) and isinstance(row.get("id"), str) and isinstance(row.get("end_ns"), int)
        else None
    )


def scan(path: Path) -> JournalScan:
    """One pass over a journal. Raises RunFormatError."""
    last: dict[str, int] = {}
    failed: set[str] = set()
    repeated: set[str] = set()
    size = last_ns = 0
    for start, end, row in lines(path):
        name, size, last_ns = row["id"], end, max(last_ns, row["end_ns"])
        if name in last:
            repeated.add(name)
        last[name] = start
        (failed.add if row.get("error") else failed.discard)(name)
    return JournalScan(last, frozenset(failed), frozenset(repeated), size, last_ns)


def open_journal(path: Path) -> JournalRequests:
    """The rows of an unfinished run. Raises RunFormatError."""
    return JournalRequests(path, scan(path).last)


class JournalRequests:
    """The rows of a journal, each id once. An id without an offset in `last` is known to have one line."""

    def __init__(self, path: Path, last: Mapping[str, int]) -> None:
        self._path = path
        self._last = last

    def __len__(self) -> int:
        return len(self._last)

    def rows(self) -> Iterator[Mapping[str, Any]]:
        for start, _, row in lines(self._path):
            if self._last.get(row["id"], start) == start:
                yield row
