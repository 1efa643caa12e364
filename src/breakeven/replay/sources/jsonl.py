"""JSON lines, plain or compressed (.gz, .zst), one at a time; or one JSON list, which is read whole."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, Literal

import orjson
import pyarrow as pa

from breakeven.errors import UsageError
from breakeven.replay.sources.rows import Row, Warn

COMPRESSED = (".gz", ".zst", ".bz2")
"""As pyarrow knows them by their endings."""
_PEEK_BYTES = 65_536
_BLOCK_BYTES = 1 << 20
_UNREADABLE = (OSError, EOFError, ValueError, pa.ArrowException)
_BOM = b"\xef\xbb\xbf"
_BLANK = _BOM + b" \t\r\n"
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}
"""How compressed files begin."""


class JsonRows:
    """Rows of JSON objects. Raises UsageError for a file that is empty or binary."""

    kind: Literal["jsonl"] = "jsonl"
    columns: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        beginning = self._beginning()
        ending = next((end for magic, end in _MAGIC.items() if beginning.startswith(magic)), None)
        if ending and path.suffix not in COMPRESSED:
            raise UsageError(f"{path} is compressed: rename it to {path.name}{ending}")
        if b"\0" in beginning:
            raise UsageError(f"{path} is binary: give JSON lines, parquet, or a run folder")
        if not beginning:
            raise UsageError(f"{path} is empty: give JSON lines, parquet, or a run folder")
        self._is_list = beginning.lstrip(_BLANK).startswith(b"[")

    def count(self) -> int | None:
        if self._is_list or self.path.suffix in COMPRESSED:
            return None
        try:
            with self._open() as file:
                return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK_BYTES), b""))
        except (OSError, UsageError):
            return None

    def read(self, warn: Warn, only: Collection[str] | None = None) -> Iterator[Row]:
        """A last line that seems cut off is left out with a warning. Raises UsageError for any other that is
        no object."""
        return self._items() if self._is_list else self._lines(warn)

    def _items(self) -> Iterator[Row]:
        with self._open() as file:
            try:
                values = orjson.loads(file.read().removeprefix(_BOM))
            except _UNREADABLE as error:
                raise UsageError(f"{self.path} is no JSON list ({error}): mend it") from error
        for number, value in enumerate(values, 1):
            if not isinstance(value, dict):
                raise UsageError(f"{self.path}, item {number}: not a JSON object")
            yield Row(self.path, "item", number, value)

    def _lines(self, warn: Warn) -> Iterator[Row]:
        torn = 0
        for number, line in self._raw_lines():
            if torn:
                raise UsageError(f"{self.path}, line {torn}: not JSON: mend or remove that line")
            value = _loads(line)
            if value is _TORN:
                torn = number
                if fault := _fault(line):
                    raise UsageError(f"{self.path}, line {number}: {fault}: mend or remove that line")
            elif isinstance(value, dict):
                yield Row(self.path, "line", number, value)
            else:
                raise UsageError(f"{self.path}, line {number}: not a JSON object")
        if torn:
            warn(
                f"{self.path}, line {torn}, the last, is no whole JSON and was left out: is the file cut off?"
            )

    def _raw_lines(self) -> Iterator[tuple[int, bytes]]:
        """Lines that are not blank, with their numbers."""
        number = 0
        with self._open() as file:
            try:
                for number, line in enumerate(file, 1):
                    text = line.removeprefix(_BOM) if number == 1 else line
                    if not text.isspace():
                        yield number, text
            except _UNREADABLE as error:
                raise self._cut_off(f"after line {number}", error) from error

    def _beginning(self) -> bytes:
        """The first block that is not blank; empty if all are."""
        with self._open() as file:
            try:
                blocks = iter(lambda: file.read(_PEEK_BYTES), b"")
                return next((block for block in blocks if block.strip(_BLANK)), b"")
            except _UNREADABLE as error:
                raise self._cut_off("near its beginning", error) from error

    def _cut_off(self, where: str, error: Exception) -> UsageError:
        return UsageError(f"{self.path} ends early or is damaged {where} ({error}): restore it from a copy")

    def _open(self) -> IO[bytes]:
        try:
            if self.path.suffix in COMPRESSED:
                return io.BufferedReader(pa.input_stream(str(self.path)))
            return self.path.open("rb")
        except _UNREADABLE as error:
            raise UsageError(f"cannot read {self.path} ({error})") from error


_TORN = object()


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return _TORN


def _fault(line: bytes) -> str | None:
    """What is wrong with a line that is not JSON; None if it may just be cut off."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return None if error.reason == "unexpected end of data" else f"byte {error.start + 1} is no UTF-8"
    constants: list[str] = []
    try:
        json.loads(text, parse_constant=constants.append)
    except (ValueError, RecursionError):
        return None
    return f"holds {constants[0]}, which JSON has not" if constants else "is no strict JSON"
