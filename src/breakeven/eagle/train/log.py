"""progress.jsonl: a line for each optimizer step and each validation, as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    kept = b"".join(text for text, said in _lines(path) if said["step"] <= done) if done else b""
    with storing(folder):
        write_bytes_atomically(path, kept)
        file = FileIO(path, "ab")
    with file:
        yield Log(file, folder)


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """Its whole lines, in order."""
    return [said for _, said in _lines(folder / PROGRESS)]


def _lines(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Those that are whole, and what they say: a kill cuts the last one off, and what a machine that lost its
    power had not yet on the disk is no JSON."""
    try:
        texts = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    found = []
    for text in texts:
        with suppress(ValueError):
            said = orjson.loads(text)
            if text.endswith(b"\n") and isinstance(said, dict) and isinstance(said.get("step"), int):
                found.append((text, said))
    return found
