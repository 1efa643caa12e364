"""UndoJournal: on disk before anything is touched, it says what was found and how to undo what is done.

There is one journal per target and machine, `journals/TARGET@NODE.jsonl` in the user's state folder, until
it is closed: then it lies in `journals/closed`. Its holder has a lock on it, which the system takes away when
the holder and its last command end, in whatever way: a journal without a lock is a trial that was cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from breakeven.errors import ServerError, StorageError, UsageError
from breakeven.servers.host import INHERITED, sync_folder
from breakeven.servers.lifecycle import Found
from breakeven.servers.operation_kinds import operation_from_json
from breakeven.servers.operations import Operation
from breakeven.servers.state_folder import make_folder, name_of, state_folder
from breakeven.servers.undo_entry import holder, now, opened_entry
from breakeven.servers.undo_record import (
    Begun,
    UndoRecord,
    Verification,
    opened_record,
    read_record,
    whole_lines,
)

SUFFIX = ".jsonl"
MODE = 0o600
LOCK_PATIENCE_S = 1.0
COMMAND_PATIENCE_S = 60.0
"""For the last command of a holder that was killed."""


class UndoJournal:
    """An open journal, held by this process.

    with UndoJournal.open("systemd", found, verification) as journal:
        n = journal.about_to(operation)
        await operation.do(host)
        journal.done(n)
    """

    def __init__(self, path: Path, descriptor: int, record: UndoRecord) -> None:
        """Not to be called: `open` and `adopt` are."""
        self.path = path
        self.record = record
        self._descriptor: int | None = descriptor
        self._live: dict[int, Operation] = {}
        INHERITED.add(descriptor)

    @classmethod
    def open(
        cls,
        kind: str,
        found: Found,
        verify: Verification | None,
        options: Mapping[str, Any] | None = None,
    ) -> UndoJournal:
        """A new journal for a server that was found like this; on disk before it returns.

        Raises UsageError where a trial on the target is under way, or one was cut off and is to be recovered
        first; StorageError where the journal cannot be written: nothing may be touched then.
        """
        make_folder(journals_folder())
        path = journals_folder() / f"{name_of(found.target)}{SUFFIX}"
        refuse_taken(path, found.target)
        entry = opened_entry(kind, found, verify, options or {})
        try:
            descriptor = _create(path, entry)
        except FileExistsError:
            refuse_taken(path, found.target)
            raise UsageError(f"another trial on {found.target} began just now: try again") from None
        except OSError as error:
            raise _unwritable(path, error) from error
        return cls(path, descriptor, opened_record(entry))

    @classmethod
    def adopt(cls, path: Path) -> UndoJournal:
        """Go on with the journal of a holder that is gone; what it has of a torn last line is cut off.

        Raises UsageError where there is none, it is not gone, or the journal is damaged; StorageError.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            raise UsageError(f"there is no journal {path}: type  breakeven recover --list") from None
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            _lock_patiently(descriptor, path)
            record = read_record(path)
            if record is None or record.closed is not None:
                raise UsageError(f"{path} has nothing to put back: type  breakeven recover --list")
            os.ftruncate(descriptor, sum(len(line) + 1 for line in whole_lines(path.read_bytes())))
            journal = cls(path, descriptor, record)
            journal._append({"entry": "adopted", "holder": holder()})
        except BaseException:
            INHERITED.discard(descriptor)
            os.close(descriptor)
            raise
        return journal

    def about_to(self, operation: Operation) -> int:
        """Its number. On disk before it returns: only then may it be done. Raises StorageError."""
        number = self.record.operations
        self._append({"entry": "doing", "n": number, "operation": operation.to_json()})
        self._live[number] = operation
        return number

    def operation(self, begun: Begun) -> Operation:
        """As it was given to `about_to` by this process, else as the journal has it. Raises UsageError."""
        return self._live.get(begun.number) or operation_from_json(begun.operation)

    def done(self, number: int) -> None:
        self._append({"entry": "done", "n": number})

    def undone(self, number: int) -> None:
        self._append({"entry": "undone", "n": number})

    def restarting(self) -> None:
        """Written before any restart; with what, the operations say that are begun and not undone."""
        self._append({"entry": "restarting", "with_change": bool(self.record.begun)})

    def restarted(self) -> None:
        self._append({"entry": "restarted"})

    def verified(self) -> None:
        self._append({"entry": "verified"})

    def close(self, how: str) -> None:
        """All is put back, or kept on purpose, or given up: nothing of this is to be recovered any more.

        Raises StorageError, and is not closed then; one that cannot be moved is moved when it is met again.
        """
        self._append({"entry": "closed", "how": how})
        with contextlib.suppress(StorageError):
            shelve(self.path)
        self.release()

    def release(self) -> None:
        """Let go of it, closed or not: what is not closed can be recovered. Safe to call twice."""
        if self._descriptor is not None:
            INHERITED.discard(self._descriptor)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> UndoJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _append(self, entry: Mapping[str, Any]) -> None:
        """Raises StorageError, with nothing of the entry left."""
        if self._descriptor is None:
            raise ServerError(f"{self.path} was closed already")
        stamped = {**entry, "at": now()}
        length = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            _write(self._descriptor, stamped)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, length)
            raise _unwritable(self.path, error) from error
        self.record = self.record.after(stamped)


def journals_folder() -> Path:
    return state_folder() / "journals"


def is_held(path: Path) -> bool:
    """Whether a process that still runs has it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_orphan(path: Path) -> bool:
    """Whether the process that wrote a journal last is gone from this machine, though a command of it may
    still run. False for a journal that cannot be read."""
    try:
        record = read_record(path)
    except UsageError:
        return False
    if record is None or record.node != platform.node():
        return False
    return not is_alive(record.holder.get("pid"))


def is_alive(pid: Any) -> bool:
    """Whether there is a process of that number on this machine; True for what is no number."""
    try:
        os.kill(int(pid), 0)
    except (OSError, TypeError, ValueError) as error:
        return not isinstance(error, ProcessLookupError)
    return True


def shelve(path: Path) -> None:
    """Move a closed journal to the closed ones."""
    closed = path.parent / "closed"
    make_folder(closed)
    try:
        path.replace(closed / f"{path.stem}.{datetime.now(UTC):%Y%m%dT%H%M%S.%f}{SUFFIX}")
        sync_folder(closed)
        sync_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def refuse_taken(path: Path, target: str) -> None:
    """Raises UsageError where a trial on the target is under way, or was cut off."""
    record = read_record(path)
    if record is None:
        return
    if is_held(path):
        raise _under_way(record)
    if record.closed is None:
        raise UsageError(
            f"a trial on {target} was cut off, and is to be put back first: type  breakeven recover {target}"
        )
    shelve(path)


def _under_way(record: UndoRecord) -> UsageError:
    if is_orphan(journals_folder() / f"{record.id}{SUFFIX}"):
        return UsageError(
            f"the last command of a trial on {record.target} that was cut off still runs: wait until it "
            f"ends, then type  breakeven recover {record.target}"
        )
    return UsageError(f"{record.held_by()}: wait until it ends")


def _create(path: Path, entry: Mapping[str, Any]) -> int:
    """Locked and whole before it gets the name by which others know it. Raises OSError, with nothing left."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write(descriptor, entry)
        os.link(draft, path)
        draft.unlink()
        sync_folder(path.parent)
    except OSError:
        os.close(descriptor)
        draft.unlink(missing_ok=True)
        raise
    return descriptor


def _lock_patiently(descriptor: int, path: Path) -> None:
    """Raises UsageError where another process keeps it; those that only look have it for an instant."""
    deadline = time.monotonic() + (COMMAND_PATIENCE_S if is_orphan(path) else LOCK_PATIENCE_S)
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                record = read_record(path)
                raise _under_way(record) if record else UsageError(f"{path} is in use: try again") from None
            time.sleep(0.02)


def _write(descriptor: int, entry: Mapping[str, Any]) -> None:
    line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")
    left = memoryview(line + b"\n")
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"the journal {path} cannot be written: {error.strerror}; nothing more was touched")
