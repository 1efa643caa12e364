"""shards.jsonl: which shard files are in place, with their checksums.

    {"shard": "shard-00000.safetensors", "sha256": "…", "bytes": 1234, "samples": ["id", …], "tokens": 56}

A line is appended, and forced to the disk, once its shard is. What a kill cut off, and lines whose shard is
gone or of another size, are dropped on opening: those shards are made again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from breakeven.eagle.stage import checksum
from breakeven.trace.files import storing, write_atomically
from breakeven.trace.typed import check_types

FILE = "shards.jsonl"


@dataclass(frozen=True, slots=True)
class Line:
    """One shard that is in place."""

    shard: str
    sha256: str
    bytes: int
    samples: tuple[str, ...]
    """Their ids, in the data's order."""
    tokens: int


class Index:
    """The shards of a folder, and how one is added. Raises StorageError.

    With `recheck` every file is read, and those whose checksum is another than their line's are dropped too.
    """

    def __init__(self, folder: Path, recheck: bool = False) -> None:
        self._folder = folder
        self.path = folder / FILE
        with storing(folder):
            before = self.path.read_bytes() if self.path.exists() else b""
            self.lines = {line.shard: line for line in parse(before) if _is_there(folder, line, recheck)}
        self._write(before)

    def add(self, shard: str, data: bytes, samples: Sequence[str], tokens: int) -> None:
        """Puts the file in place, then says so."""
        line = Line(shard, hashlib.sha256(data).hexdigest(), len(data), tuple(samples), tokens)
        put(self._folder / shard, data)
        with storing(self._folder), self.path.open("ab") as file:
            file.write(_text(line))
            file.flush()
            os.fsync(file.fileno())
        self.lines[shard] = line

    def sort(self, shards: Sequence[str]) -> None:
        """Has the lines in that order: a shard that was made again has another place until then."""
        with storing(self._folder):
            before = self.path.read_bytes()
        self.lines = {shard: self.lines[shard] for shard in shards}
        self._write(before)

    def _write(self, before: bytes) -> None:
        kept = b"".join(map(_text, self.lines.values()))
        if kept != before:
            put(self.path, kept)


def put(path: Path, data: bytes) -> None:
    """A whole file, or none. Raises StorageError; what was written by then is removed."""

    def write(partial: Path) -> None:
        partial.write_bytes(data)

    with storing(path.parent):
        write_atomically(path, write)


def parse(data: bytes) -> list[Line]:
    """All lines that are whole."""
    found = []
    for text in data.splitlines(keepends=True):
        try:
            said = orjson.loads(text)
            line = check_types(Line(**{**said, "samples": tuple(said["samples"])}))
        except (ValueError, TypeError, KeyError):
            continue
        if text.endswith(b"\n"):
            found.append(line)
    return found


def _is_there(folder: Path, line: Line, recheck: bool) -> bool:
    path = folder / line.shard
    if Path(line.shard).name != line.shard or not path.is_file() or path.stat().st_size != line.bytes:
        return False
    return not recheck or checksum(path) == line.sha256


def _text(line: Line) -> bytes:
    return orjson.dumps(asdict(line)) + b"\n"
