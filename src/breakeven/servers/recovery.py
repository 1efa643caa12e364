"""Recovery: a server is put back as its journal found it, by the trial itself or after it was cut off."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from breakeven.errors import BreakevenError, ServerError, StorageError
from breakeven.servers.lifecycle import START_LIMIT_S, Lifecycle
from breakeven.servers.operations import Host, Operation, Waiting
from breakeven.servers.to_its_end import to_its_end
from breakeven.servers.undo_journal import (
    SUFFIX,
    UndoJournal,
    is_alive,
    is_held,
    is_orphan,
    journals_folder,
    shelve,
)
from breakeven.servers.undo_record import UndoRecord, Verification, read_record
from breakeven.units import duration

Done = TypeVar("Done")

Say = Callable[[str], None]
Verify = Callable[[Verification, Lifecycle, bool], Awaitable[None]]
"""Waits until a completion comes back from the baseline, which was restarted just before, or was not. Raises
BreakevenError where none does."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""What puts a server back is tried again after pauses that double: a cluster or a daemon may be away."""
DRAFT_AGE_S = 600.0
"""A journal that has no name yet gets it within moments: of another machine, this old is left."""


class Unnoted(StorageError):
    """All is back as it was found, but the journal could not be told so."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A trial that was cut off, or a journal that cannot be read."""

    path: Path
    record: UndoRecord | None
    problem: str | None = None


def pending() -> tuple[Pending, ...]:
    """Journals that are not closed and whose holder is gone, of whatever machine. Raises OSError."""
    return tuple(found for path in _journals() if (found := _look(path)) is not None)


def at_work() -> tuple[UndoRecord, ...]:
    """Journals that another process is putting back right now. Raises OSError."""
    return tuple(record for path in _journals() if (record := _adopted(path)) is not None)


def tidy() -> None:
    """Put away what was closed by a process that then was killed, and remove what was never begun. Raises
    OSError or StorageError."""
    for path in _journals():
        if not is_held(path) and _is_closed(path):
            shelve(path)
    for draft in journals_folder().glob(f".*{SUFFIX}.*"):
        if _is_left(draft):
            draft.unlink(missing_ok=True)


async def change(journal: UndoJournal, host: Host, operations: Iterable[Operation]) -> None:
    """Do the operations, each once its undo is on disk. Raises what they raise, and StorageError; what was
    begun is in the journal, to be undone.

    Cancelled, it ends the operation that is under way before it raises: a daemon goes on with what a command
    that is killed asked of it, and would do it after its undo.
    """

    async def one(number: int, operation: Operation) -> None:
        await operation.do(host)
        journal.done(number)

    for operation in operations:
        doing = one(journal.about_to(operation), operation)
        await (doing if isinstance(operation, Waiting) else _to_its_end(doing))


async def restart(journal: UndoJournal, lifecycle: Lifecycle) -> None:
    """With the journal knowing; cancelled, as `change`. Raises ServerError or StorageError."""

    async def whole() -> None:
        await lifecycle.restart()
        journal.restarted()

    journal.restarting()
    await _to_its_end(whole())


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Raises what it raises; CancelledError, once it has ended, where the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = await to_its_end(task)
    if cancelled is not None:
        raise cancelled from task.exception()
    task.result()


async def put_back(
    journal: UndoJournal,
    host: Host,
    lifecycle: Lifecycle | None,
    verify: Verify,
    say: Say = lambda line: None,
    limit_s: float = START_LIMIT_S,
) -> None:
    """Undo what was begun, the last first; restart where the change may be running; see a completion; close.

    Killed anywhere in it, the same can be done again. What fails is tried again for `limit_s`, unless it does
    not come right by itself, which is a UsageError. A journal that cannot be written, as on a full disk, does
    not stop it: Unnoted is raised at the end. Otherwise raises what undoing, restarting and verifying raise,
    and the journal stays.
    """
    notes, patience, began = _Notes(), _Patience(say, limit_s), time.monotonic()
    await _undo(journal, host, say, patience, notes.keep)
    if lifecycle is not None and journal.record.verify is not None and journal.record.touched:
        what = ""
        is_restarted = await patience.until_done(partial(_may_run_changed, journal.record, lifecycle))
        if is_restarted:
            say(f"restarting {journal.record.target} as it was")
            notes.keep(journal.restarting)
            await patience.until_done(lifecycle.restart)
            notes.keep(journal.restarted)
            is_restarted, what = await _restarted(lifecycle, began)
        if not journal.record.verified:
            say(f"waiting for a completion of {journal.record.verify.url}{what}")
            await verify(journal.record.verify, lifecycle, is_restarted)
            notes.keep(journal.verified)
    try:
        notes.raise_first()
        journal.close("put back")
    except StorageError as error:
        raise Unnoted(f"{journal.record.target} is back as it was found, but {error}") from error


async def undo_all(journal: UndoJournal, host: Host, say: Say, limit_s: float = START_LIMIT_S) -> None:
    """Undo what was begun, the last first. Raises what undoing raises at last, and StorageError."""
    await _undo(journal, host, say, _Patience(say, limit_s), lambda note: note())


async def _undo(
    journal: UndoJournal,
    host: Host,
    say: Say,
    patience: _Patience,
    keep: Callable[[Callable[[], None]], None],
) -> None:
    for begun in reversed(journal.record.begun):
        operation = journal.operation(begun)
        if (words := operation.describe_undo()) is not None:
            say(f"putting back: {words}")
        await patience.until_done(partial(operation.undo, host))
        keep(partial(journal.undone, begun.number))


class _Patience:
    """What puts a server back is tried again and again, against the clock."""

    def __init__(self, say: Say, limit_s: float) -> None:
        self._say = say
        self._until_s = time.monotonic() + limit_s

    async def until_done(self, act: Callable[[], Awaitable[Done]]) -> Done:
        """What it comes to. Raises what the try after the limit raises, and UsageError at once."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await act()
            except (ServerError, StorageError) as error:
                left_s = self._until_s - time.monotonic()
                if left_s <= 0:
                    raise
                pause_s = min(pause_s, left_s)
                self._say(f"trying again in {duration(pause_s)}, as {error}")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


class _Notes:
    """Entries about what is put back already: to put the rest back is worth more than to note them."""

    def __init__(self) -> None:
        self._first: StorageError | None = None

    def keep(self, write: Callable[[], None]) -> None:
        try:
            write()
        except StorageError as error:
            self._first = self._first or error

    def raise_first(self) -> None:
        if self._first is not None:
            raise self._first


async def _may_run_changed(record: UndoRecord, lifecycle: Lifecycle) -> bool:
    """Whether the process that runs may have been started with the change, by us or by its supervisor. After
    a reboot, or where it was cut off just before the restart, it was not."""
    if await lifecycle.runs_as_found():
        return False
    if record.may_run_changed:
        return True
    if record.first_change is None:
        return False
    state = await lifecycle.state()
    if state.condition != "running" or state.since_s is None:
        return True
    changed_s = (datetime.now(UTC) - datetime.fromisoformat(record.first_change)).total_seconds()
    return state.since_s <= changed_s


async def _restarted(lifecycle: Lifecycle, began: float) -> tuple[bool, str]:
    """Whether what runs started after that time.monotonic(), and what it is. A container that is as it was
    found already, as after a put-back that could not be noted, is not restarted; what cannot be told is taken
    to be."""
    with suppress(ServerError):
        state = await lifecycle.returning_state()
        is_younger = state.since_s is None or state.since_s <= time.monotonic() - began
        return is_younger, f", {state.detail}" if state.detail else ""
    return True, ""


def _journals() -> list[Path]:
    folder = journals_folder()
    return sorted(folder.glob(f"[!.]*{SUFFIX}")) if folder.is_dir() else []


def _is_left(draft: Path) -> bool:
    """Whether whoever began it is gone. That it is not locked does not say so: for a moment none is."""
    if is_held(draft):
        return False
    if f"@{platform.node()}{SUFFIX}." in draft.name:
        return not is_alive(draft.suffix.removeprefix("."))
    with suppress(FileNotFoundError):
        return time.time() - draft.stat().st_mtime > DRAFT_AGE_S
    return False


def _is_closed(path: Path) -> bool:
    try:
        record = read_record(path)
    except BreakevenError:
        return False
    return record is not None and record.closed is not None


def _look(path: Path) -> Pending | None:
    if is_held(path) and not is_orphan(path):
        return None
    try:
        record = read_record(path)
    except BreakevenError as error:
        return Pending(path, None, str(error))
    if record is None or record.closed is not None:
        return None
    return Pending(path, record)


def _adopted(path: Path) -> UndoRecord | None:
    """What a journal says whose holder goes on where another process ended."""
    if not is_held(path) or is_orphan(path):
        return None
    with suppress(BreakevenError):
        record = read_record(path)
        return record if record is not None and record.adopted and record.closed is None else None
    return None
