"""progress.jsonl: a line for each optimizer step and each validation, as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.train.records import Step, Validation
from breakeven.eagle.train.watch import Watch
from breakeven.trace.files import storing, write_bytes_atomically

PROGRESS = "progress.jsonl"


class Log(Watch):
    """Appends lines; what is written is there, also after a kill. Raises StorageError."""

    def __init__(self, file: FileIO, folder: Path) -> None:
        self._file, self._folder = file, folder

    def stepped(self, step: Step) -> None:
        self._write(asdict(step))

    def validated(self, found: Validation) -> None:
        scores = {**asdict(found.scores), "acceptance_length": found.acceptance_length}
        self._write({"step": found.step, "validation": scores})

    def _write(self, line: Any) -> None:
        left = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        with storing(self._folder):
            while left:  # a disk that is nearly full takes part of it
                left = left[self._file.write(left) :]


@contextmanager
def opened(folder: Path, done: int) -> Iterator[Log]:
    """Goes on after `done` steps: what a run that was killed wrote beyond them is taken away."""
    path = folder / PROGRESS
    kept = b"".join(line for line in _lines(path) if _step(line) <= done) if done else b""
    with storing(folder):
        write_bytes_atomically(path, kept)
        file = FileIO(path, "ab")
    with file:
        yield Log(file, folder)


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """Its whole lines, in order."""
    return [orjson.loads(line) for line in _lines(folder / PROGRESS)]


def _lines(path: Path) -> list[bytes]:
    """Those that were written to their end."""
    try:
        return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def _step(line: bytes) -> int:
    step: int = orjson.loads(line)["step"]
    return step
