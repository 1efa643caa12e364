"""Files that are whole or not there, and disk failures in words."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from breakeven.errors import StorageError

ELSEWHERE = "choose another folder"
_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "your disk quota is used up: free some space",
    errno.EFBIG: "the file may not grow further (ulimit -f): raise the limit",
    errno.EROFS: f"the disk is read-only: {ELSEWHERE}",
    errno.EACCES: f"no permission to write there: {ELSEWHERE}",
    errno.EPERM: f"no permission to write there: {ELSEWHERE}",
    errno.EIO: f"the disk reported an input/output error: {ELSEWHERE}",
    errno.ENOTDIR: f"part of that path is a file: {ELSEWHERE}",
}


def storage_error(folder: Path, error: OSError, option: str | None = None) -> StorageError:
    """A StorageError that names the folder and what to do; `option` is the one that names another folder."""
    advice = _ADVICE.get(error.errno or 0, f"{error.strerror or error}: {ELSEWHERE}")
    if option and advice.endswith(ELSEWHERE):
        advice += f" with {option}"
    return StorageError(f"cannot write to {folder}: {advice}")


@contextmanager
def storing(folder: Path, option: str | None = None) -> Iterator[None]:
    """Turns OSError into StorageError."""
    try:
        yield
    except OSError as error:
        raise storage_error(folder, error, option) from error


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """`write` fills a file beside `path`, which then takes its place: readers see the old or the new.

    A link is followed, and what is no regular file (a device, a pipe) is written into. Raises what `write`
    raises; the unfinished file is removed.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        write(path)
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        write(partial)
        _sync(partial)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """The same, of a file whose content is at hand."""

    def write(partial: Path) -> None:
        partial.write_bytes(data)

    write_atomically(path, write)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
