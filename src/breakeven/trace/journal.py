"""RunWriter: a run on disk while it is measured. A crash loses at most the request in flight."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from breakeven.errors import RunFormatError
from breakeven.trace.disk import JOURNAL, META, PROMPTS, REQUESTS
from breakeven.trace.files import storage_error, storing, write_atomically
from breakeven.trace.journal_file import JournalRequests, scan
from breakeven.trace.meta import RunMeta, dump_meta, load_meta
from breakeven.trace.prompts import dump_prompts, load_prompts_of, prompts_digest
from breakeven.trace.records import RequestTrace
from breakeven.trace.requests_file import open_requests, write_requests
from breakeven.trace.rows import dump_json, to_row
from breakeven.workload.prompts import Prompt

SYNC_EVERY_S = 1.0
"""At most so much is lost when the whole machine goes down; a crash of the process alone loses nothing."""


class _Journal:
    """journal.jsonl, open and locked. It always ends in a whole line, also after a failed write.

    The folder is locked too, where the file system can do that: journals come and go by renaming, and a lock
    on one that was replaced keeps nobody out.
    """

    def __init__(self, folder: Path) -> None:
        """Cuts a torn last line off. Raises RunFormatError if another process writes here, or OSError."""
        self._folder = folder
        self._held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        _lock(self._held, folder)
        if not (folder / JOURNAL).exists():
            _reopen(folder)
        self._descriptor = os.open(folder / JOURNAL, os.O_RDWR | os.O_APPEND)
        _lock(self._descriptor, folder)
        self.found = scan(folder / JOURNAL)
        os.ftruncate(self._descriptor, self.found.size)
        self._size = self.found.size
        self.last_ns = self.found.last_ns
        self.rewritten = {name: self.found.last[name] for name in self.found.repeated | self.found.failed}
        """Start of the last line of each id that has several, or may get another."""
        self._syncer = ThreadPoolExecutor(1, "journal-sync")
        self._syncing: Future[None] | None = None
        self._synced_s = time.monotonic()

    def append(self, name: str, line: bytes, end_ns: int) -> None:
        """Raises StorageError, after which the journal is as it was before."""
        try:
            self._write(line)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise storage_error(self._folder, error) from error
        if name in self.rewritten:
            self.rewritten[name] = self._size
        self._size += len(line)
        self.last_ns = max(self.last_ns, end_ns)
        self._sync_now_and_then()

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _sync_now_and_then(self) -> None:
        """In a thread: a slow disk must not hold up the event loop that stamps the chunks."""
        now_s = time.monotonic()
        if now_s - self._synced_s < SYNC_EVERY_S or (self._syncing and not self._syncing.done()):
            return
        self._await_sync()
        self._syncing = self._syncer.submit(os.fsync, self._descriptor)
        self._synced_s = now_s

    def _await_sync(self) -> None:
        pending, self._syncing = self._syncing, None
        if pending is not None:
            with storing(self._folder):
                pending.result()

    def sync(self) -> None:
        """Raises StorageError."""
        self._await_sync()
        with storing(self._folder):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Syncs and unlocks. Raises StorageError; the file is closed all the same."""
        try:
            self.sync()
        finally:
            self._syncer.shutdown()
            os.close(self._descriptor)
            os.close(self._held)


class RunWriter:
    """Appends requests to a run folder, and closes it. One writer at a time holds a folder."""

    def __init__(self, path: Path, meta: RunMeta, prompts: tuple[Prompt, ...], journal: _Journal) -> None:
        """Use `create` or `resume`."""
        self.path = path
        self.meta = meta
        self.prompts = prompts
        self._journal = journal

    @classmethod
    def create(cls, folder: str | Path, meta: RunMeta, prompts: Iterable[Prompt]) -> RunWriter:
        """A new run in a folder that is empty or does not exist.

        Raises RunFormatError if something is in it, StorageError if it cannot be written.
        """
        path, asked = Path(folder), tuple(prompts)
        with storing(path, "--out"):
            _refuse_foreign(path)
            path.mkdir(parents=True, exist_ok=True)
            journal = _Journal(path)
            _write(path / PROMPTS, dump_prompts(asked))
            _write(path / META, dump_meta(meta))
        return cls(path, meta, asked, journal)

    @classmethod
    def resume(cls, folder: str | Path) -> tuple[RunWriter, frozenset[str]]:
        """The writer of a run that was begun, and the ids of its requests that succeeded.

        Failed requests are not among them: they are to be asked again, and their new line replaces the old.
        Stamps should go on from `last_ns`. Raises RunFormatError for a folder that holds no run, whose
        prompts were changed, or that another process is writing.
        """
        path = Path(folder)
        asked = _meta_of(path).workload.sha256
        prompts = load_prompts_of(path)
        if prompts_digest(prompts) != asked:
            raise RunFormatError(
                f"{path / PROMPTS} was changed since the run began: restore it, or measure anew"
            )
        with storing(path):
            journal = _Journal(path)
            running = replace(_meta_of(path), status="running")
            _write(path / META, dump_meta(running))
        return cls(path, running, prompts, journal), frozenset(journal.found.last) - journal.found.failed

    @property
    def last_ns(self) -> int:
        """When the last request ended, since the start of the run; 0 in a new run."""
        return self._journal.last_ns

    def append(self, trace: RequestTrace) -> None:
        """Saves a request. Raises StorageError if it cannot; what was saved before stays readable."""
        self._journal.append(trace.id, dump_json(to_row(trace)) + b"\n", trace.end_ns)

    def pause(self, meta: RunMeta) -> None:
        """Closes an interrupted run as it is: `resume` goes on from there. Raises StorageError."""
        self.meta = meta
        self._journal.close()
        with storing(self.path):
            _write(self.path / META, dump_meta(meta))

    def finish(self, meta: RunMeta) -> None:
        """Turns the journal into requests.parquet, saves `meta`, and closes the run.

        Raises StorageError, and leaves the journal, if the disk has no room for both.
        """
        self.meta = meta
        self._journal.sync()
        with storing(self.path):
            rows = JournalRequests(self.path / JOURNAL, self._journal.rewritten).rows()
            write_atomically(self.path / REQUESTS, lambda partial: write_requests(partial, rows))
            _write(self.path / META, dump_meta(meta))
            self._journal.close()
            (self.path / JOURNAL).unlink()


def _lock(descriptor: int, folder: Path) -> None:
    """Advisory; file systems without locks, or without locks on folders, go without."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise RunFormatError(f"{folder} is being written by another process: wait for its end") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EINVAL):
            raise


def _write(path: Path, data: bytes) -> None:
    def fill(partial: Path) -> None:
        partial.write_bytes(data)

    write_atomically(path, fill)


def _refuse_foreign(path: Path) -> None:
    if not path.is_dir() or not any(path.iterdir()):
        return
    other = next(name for i in range(2, 10_000) if not (name := Path(f"{path.absolute()}-{i}")).exists())
    if (path / META).exists():
        raise RunFormatError(
            f"{path} holds a run already: type  --resume {path}  to go on, or  --out {other}"
        )
    raise RunFormatError(f"{path} is not empty and holds no run: type  --out {other}")


def _meta_of(path: Path) -> RunMeta:
    try:
        return load_meta((path / META).read_bytes(), path / META)
    except OSError as error:
        raise RunFormatError(
            f"{path} holds no run to resume ({error.strerror}): leave --resume out"
        ) from error


def _reopen(path: Path) -> None:
    """The journal of a finished run again, whole or not at all."""
    if not (path / REQUESTS).exists():
        _write(path / JOURNAL, b"")
        return

    def copy(partial: Path) -> None:
        with partial.open("wb") as file:
            for row in open_requests(path / REQUESTS).rows():
                file.write(dump_json(row) + b"\n")

    write_atomically(path / JOURNAL, copy)
