"""What servers that are children of breakeven share: their log, and how they ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import IO, Literal

from breakeven.errors import StorageError


def open_log(path: Path, mode: Literal["ab", "rb"] = "ab") -> IO[bytes]:
    """Made with its folders. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open(mode)
    except OSError as error:
        raise StorageError(f"cannot write the engine's log {path}: {error.strerror}") from error


def ending(returncode: int) -> str:
    """`ended with status 1`, or `was killed by SIGSEGV`."""
    if returncode >= 0:
        return f"ended with status {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"
