"""Recovery: a server is put back as its journal found it, by the trial itself or after it was cut off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from breakeven.errors import BreakevenError, StorageError
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.operations import Host, Operation
from breakeven.servers.undo_journal import SUFFIX, UndoJournal, is_held, journals_folder, shelve
from breakeven.servers.undo_record import UndoRecord, Verification, read_record

Say = Callable[[str], None]
Verify = Callable[[Verification, Lifecycle], Awaitable[None]]
"""Waits until a completion comes back from the baseline. Raises BreakevenError where none does."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A trial that was cut off, or a journal that cannot be read."""

    path: Path
    record: UndoRecord | None
    problem: str | None = None


def pending() -> tuple[Pending, ...]:
    """Journals that are not closed and whose holder is gone, of whatever machine. Raises OSError."""
    return tuple(found for path in _journals() if (found := _look(path)) is not None)


def tidy() -> None:
    """Put away what was closed by a process that then was killed, and remove what was never begun. Raises
    OSError or StorageError."""
    for path in _journals():
        if not is_held(path) and _is_closed(path):
            shelve(path)
    for draft in journals_folder().glob(f".*{SUFFIX}.*"):
        if not is_held(draft):
            draft.unlink()


async def change(journal: UndoJournal, host: Host, operations: Iterable[Operation]) -> None:
    """Do the operations, each once its undo is on disk. Raises what they raise, and StorageError; what was
    begun is in the journal, to be undone."""
    for operation in operations:
        number = journal.about_to(operation)
        await operation.do(host)
        journal.done(number)


async def restart(journal: UndoJournal, lifecycle: Lifecycle) -> None:
    """With the journal knowing. Raises ServerError or StorageError."""
    journal.restarting()
    await lifecycle.restart()
    journal.restarted()


async def put_back(
    journal: UndoJournal,
    host: Host,
    lifecycle: Lifecycle | None,
    verify: Verify,
    say: Say = lambda line: None,
) -> None:
    """Undo what was begun, the last first; restart where the change may be running; see a completion; close.

    Killed anywhere in it, the same can be done again. A journal that cannot be written, as on a full disk,
    does not stop it: StorageError is raised at the end. Otherwise raises what undoing, restarting and
    verifying raise, and the journal stays.
    """
    notes = _Notes()
    await undo_all(journal, host, say, notes)
    if lifecycle is not None and journal.record.verify is not None and journal.record.touched:
        if await _may_run_changed(journal.record, lifecycle):
            say(f"restarting {journal.record.target} as it was")
            notes.keep(journal.restarting)
            await lifecycle.restart()
            notes.keep(journal.restarted)
        if not journal.record.verified:
            say(f"waiting for a completion of {journal.record.verify.url}")
            await verify(journal.record.verify, lifecycle)
            notes.keep(journal.verified)
    notes.raise_first()
    journal.close("put back")


async def undo_all(journal: UndoJournal, host: Host, say: Say, notes: _Notes | None = None) -> None:
    """Undo what was begun, the last first. Raises what undoing raises; StorageError, without `notes`."""
    for begun in reversed(journal.record.begun):
        operation = journal.operation(begun)
        say(f"undoing: {operation.describe()}")
        await operation.undo(host)
        if notes is None:
            journal.undone(begun.number)
        else:
            notes.keep(partial(journal.undone, begun.number))


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
    """Whether the process that runs may have been started with the change, by us or by its supervisor."""
    if record.may_run_changed:
        return True
    if record.first_change is None:
        return False
    state = await lifecycle.state()
    if state.condition != "running" or state.since_s is None:
        return True
    changed_s = (datetime.now(UTC) - datetime.fromisoformat(record.first_change)).total_seconds()
    return state.since_s <= changed_s


def _journals() -> list[Path]:
    folder = journals_folder()
    return sorted(folder.glob(f"[!.]*{SUFFIX}")) if folder.is_dir() else []


def _is_closed(path: Path) -> bool:
    try:
        record = read_record(path)
    except BreakevenError:
        return False
    return record is not None and record.closed is not None


def _look(path: Path) -> Pending | None:
    if is_held(path):
        return None
    try:
        record = read_record(path)
    except BreakevenError as error:
        return Pending(path, None, str(error))
    if record is None or record.closed is not None:
        return None
    return Pending(path, record)
