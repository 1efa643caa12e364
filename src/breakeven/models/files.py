"""Files that appear whole or not at all, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from breakeven.errors import StorageError
from breakeven.units import size

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, None where those are not known."""

BLOCK_BYTES = 1 << 20


def silent(done: int, total: int | None) -> None:
    """A Progress that shows nothing."""


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an OSError of the disk into a StorageError that names the file and the way out."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free some space or type  "
            "BREAKEVEN_CACHE=/another/folder breakeven …"
        ) from error


def need_space(folder: Path, n_bytes: int) -> None:
    """Raise StorageError now rather than after minutes, where the folder's disk cannot hold so much."""
    with storing(folder):
        stat = os.statvfs(folder)
    free = stat.f_bavail * stat.f_frsize
    if free < n_bytes:
        raise StorageError(
            f"{folder} has {size(free)} free and {size(n_bytes)} are needed; free some space or type  "
            "BREAKEVEN_CACHE=/another/folder breakeven …"
        )


@contextlib.contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the right to write `target`, among all processes of this machine; waits for it.

    The lock file stays: removing it would let two processes hold locks on two files of one name.
    """
    with storing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = target.with_name(f".{target.name}.lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def part_of(target: Path) -> Path:
    """Where the target is written until it is whole."""
    return target.with_name(f"{target.name}.part")


def commit(part: Path, target: Path) -> None:
    """Make the part the target, durably. Raises StorageError."""
    with storing(target):
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
