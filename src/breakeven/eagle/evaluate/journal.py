"""replies.jsonl: a line for each reply that was evaluated, forced to the disk; and a record for replay.

    {"id": "…", "category": "…", "prompt_token_ids": […], "output_token_ids": […],
     "acc_eagle3": {"acc_len": [0, 3, 1, …]}, "eagle3": {"contexts": […], "agree": […], …}}

acc_len counts, for each token of the output, the drafts accepted before it and the token after them; 0 is no
draft, as before the first, which the prefill gives. `eagle3` holds the counts of Drafted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.evaluate.drafted import Drafted
from breakeven.eagle.evaluate.replies import Reply
from breakeven.errors import RunFormatError
from breakeven.trace.files import storing

FILE = "replies.jsonl"
COLUMN, COUNTS = "acc_eagle3", "eagle3"

Line = Mapping[str, Any]


class Journal:
    """The file, open for appending by the one process that is at work in the folder (at_work.py)."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Use `opened`."""
        self._path, self._descriptor = path, descriptor
        self.done = frozenset(line["id"] for line in lines(path))

    def append(self, reply: Reply, drafted: Drafted) -> None:
        """Raises StorageError."""
        rest = memoryview(orjson.dumps(_line(reply, drafted), option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")
        with storing(self._path.parent):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)


@contextmanager
def opened(path: Path) -> Iterator[Journal]:
    """What a kill left of a line is cut off. Raises RunFormatError for a damaged file, StorageError."""
    with storing(path.parent):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        with storing(path.parent):
            os.ftruncate(descriptor, path.read_bytes().rfind(b"\n") + 1)
        yield Journal(path, descriptor)
    finally:
        os.close(descriptor)


def lines(path: Path) -> list[Line]:
    """Every line. Raises RunFormatError for one that is damaged."""
    found = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = orjson.loads(text)
            Drafted(**line[COUNTS])
            found.append(line)
        except (ValueError, TypeError, KeyError) as error:
            raise RunFormatError(
                f"{path}, line {number} is damaged ({error}): remove that line, and evaluate again"
            ) from error
    return found


def _line(reply: Reply, drafted: Drafted) -> dict[str, Any]:
    counts = asdict(drafted)
    lengths = [0, *(accepted + 1 for accepted in drafted.accepted)]
    return {
        "id": reply.id,
        "category": reply.category,
        "prompt_token_ids": reply.prompt,
        "output_token_ids": reply.output,
        COLUMN: {"acc_len": lengths},
        COUNTS: counts,
    }
