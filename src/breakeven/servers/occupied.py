"""A target is one trial's from before its baseline is measured to its end: two would measure each other.

The lock is one of the system, on a file in the user's state folder: it goes with its process, however that
ends. The file stays, and says nothing by itself.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from breakeven.errors import StorageError, UsageError
from breakeven.servers.state_folder import make_folder, name_of, state_folder
from breakeven.servers.undo_entry import holder

SUFFIX = ".lock"
MODE = 0o600


@dataclass(frozen=True, slots=True)
class Running:
    """A trial that is not over."""

    target: str
    pid: int
    began: str
    """ISO 8601, UTC."""

    def describe(self) -> str:
        """With what to do."""
        return (
            f"a trial on {self.target} runs (process {self.pid}, since {self.began}): wait until it ends, or "
            "end it by Ctrl-C in its terminal"
        )


@contextmanager
def occupied(target: str) -> Iterator[None]:
    """No other trial on the target gets in here meanwhile. Raises UsageError where one is, StorageError."""
    path = _path(target)
    make_folder(path.parent)
    descriptor = _opened(path)
    try:
        _lock(descriptor, path, target)
        yield
    finally:
        os.close(descriptor)


def refuse_occupied(target: str) -> None:
    """Raises UsageError where a trial on the target runs."""
    if (running := _running(_path(target))) is not None:
        raise UsageError(running.describe())


def all_running() -> tuple[Running, ...]:
    """Trials of this user on this machine."""
    folder = _path("").parent
    found = (_running(path) for path in sorted(folder.glob(f"*{SUFFIX}")))
    return tuple(running for running in found if running is not None)


def _path(target: str) -> Path:
    return state_folder() / "targets" / f"{name_of(target)}{SUFFIX}"


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, MODE)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error


def _lock(descriptor: int, path: Path, target: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({"target": target, **holder()}).encode())
    except BlockingIOError:
        running = _running(path)
        raise UsageError(
            running.describe() if running else f"another trial on {target} begins or ends just now: try again"
        ) from None
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error


def _running(path: Path) -> Running | None:
    """What a file says whose lock somebody has; a look has it for an instant itself."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(path)
    finally:
        os.close(descriptor)
    return None


def _read(path: Path) -> Running | None:
    try:
        said = json.loads(path.read_bytes())
        return Running(str(said["target"]), int(said["pid"]), str(said["began"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
