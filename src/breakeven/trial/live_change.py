"""LiveChange: a service runs changed, and comes back as it was found, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TypeVar

from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import StorageError
from breakeven.servers import recovery
from breakeven.servers.lifecycle import START_LIMIT_S, Lifecycle
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.operations import Operation
from breakeven.servers.progress import Progress
from breakeven.servers.readiness import Ready, Wanted, wait_until_ready
from breakeven.servers.start_times import keep_start_s, last_start_s
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification
from breakeven.trial.live_interrupts import heeded, undisturbed
from breakeven.trial.live_plan import LivePlan
from breakeven.trial.live_service import Service
from breakeven.trial.live_watch import Watch
from breakeven.workload.prompts import Prompt

Told = TypeVar("Told")

DEFAULT_MODE, OTHERS_READ = 0o644, 0o004
AS_ROOT = "systemd:"
"""Targets whose files are written as root, and read as whoever the service runs as."""


class LiveChange:
    """Made by `changing`; nothing is touched before `start`."""

    def __init__(self, service: Service, plan: LivePlan, watch: Watch, journal: UndoJournal) -> None:
        self.service = service
        self.plan = plan
        self.watch = watch
        self.journal = journal
        self.is_back = False
        """The service answers as it was found."""
        self.kept: tuple[Operation, ...] = ()
        """What stays, instead of being put back."""
        self.baseline: Ready | None = None
        """How the baseline came back; None where it was not restarted."""

    async def start(
        self, operations: Sequence[Operation], probes: Sequence[Prompt] = (), concurrency: int = 1
    ) -> Ready:
        """Change it, restart it, and wait until it is ready. Raises BreakevenError where one fails."""
        began = self._now()
        await recovery.change(self.journal, self.service.host, operations)
        await recovery.restart(self.journal, self.service.lifecycle)
        return await self._ready(True, began, probes, concurrency)

    async def again(self, probes: Sequence[Prompt] = (), concurrency: int = 1) -> Ready:
        """Restart it with the change that it has. Raises BreakevenError."""
        began = self._now()
        await recovery.restart(self.journal, self.service.lifecycle)
        return await self._ready(True, began, probes, concurrency)

    async def keep(self, make: Callable[[], tuple[Operation, ...]]) -> None:
        """Undo what the trial did, do what is made then for good instead, and see it answer. Raises
        BreakevenError: then the service is put back as it is after any other failure."""
        began = self._now()
        await recovery.undo_all(self.journal, self.service.host, self._say)
        operations = make()
        await recovery.change(self.journal, self.service.host, operations)
        await recovery.restart(self.journal, self.service.lifecycle)
        await self._ready(True, began, (), self.plan.trial.concurrency)
        self.journal.close("kept")
        self.kept = operations

    async def put_back(self, restart: bool) -> None:
        """Undo, restart, and see a real completion. `restart` is asked for a server that ends with us only:
        any other has to run. Raises BreakevenError: then the journal stays, for `breakeven recover`."""
        began = self._now()

        async def verify(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
            self.baseline = await self._ready(False, began if is_restarted else None)

        service, touched = self.service, self.journal.record.touched
        await recovery.put_back(
            self.journal, service.host, service.lifecycle, verify, self._say, self._limit_s(False)
        )
        if service.ends_with_us and touched and restart:
            self._say(f"restarting {service.found.target} as it was")
            await service.lifecycle.restart()
            self.baseline = await self._ready(False, began)
        self.is_back = True

    async def _ready(
        self, changed: bool, began: float | None, probes: Sequence[Prompt] = (), concurrency: int = 1
    ) -> Ready:
        limit_s = self._limit_s(changed)
        return await ready(self.service, limit_s, changed, began, probes, concurrency, self._progress)

    def _limit_s(self, changed: bool) -> float:
        return self.plan.start_limit_s if changed else put_back_limit_s(self.plan)

    def _now(self) -> float | None:
        """A person may take hours to restart a server: that is no part of its start."""
        return None if self.service.lifecycle.kind == "attached" else monotonic()

    def _say(self, line: str) -> None:
        told(self.watch.said, line)

    def _progress(self, progress: Progress) -> None:
        told(self.watch.starting, progress)


def put_back_limit_s(plan: LivePlan) -> float:
    """A baseline that answers late is better than one that is given up."""
    return max(plan.start_limit_s, START_LIMIT_S)


def told(tell: Callable[[Told], None], what: Told) -> None:
    """Whoever watches may be gone, as a closed terminal is: nothing of the service depends on that."""
    with suppress(Exception):
        tell(what)


@asynccontextmanager
async def changing(service: Service, plan: LivePlan, watch: Watch) -> AsyncIterator[LiveChange]:
    """The service may be changed inside, and is put back at the end, verified with a completion, unless it
    was kept. Ctrl-C, SIGTERM and SIGHUP end what is done inside, and never the put-back.

    Raises what `UndoJournal.open` raises, with nothing touched; what is raised inside, `is_back` by then;
    BreakevenError, with a note on what to type, where the service could not be put back.
    """

    def say(line: str) -> None:
        told(watch.said, line)

    with (
        UndoJournal.open(
            service.lifecycle.kind, service.found, service.verification(), service.options
        ) as journal,
        heeded(say, put_back_limit_s(plan)),
    ):
        change = LiveChange(service, plan, watch, journal)
        is_interrupted = False
        try:
            yield change
        except (asyncio.CancelledError, KeyboardInterrupt):
            is_interrupted = True
            say("interrupted: the service is put back as it was found")
            raise
        finally:
            if not change.kept:
                going = _put_back(change, restart=not is_interrupted)
                await undisturbed(going, say, put_back_limit_s(plan))


async def _put_back(change: LiveChange, restart: bool) -> None:
    target = change.service.found.target
    try:
        await change.put_back(restart)
    except recovery.Unnoted:
        change.is_back = True
        raise
    except Exception as error:
        if not change.service.ends_with_us:
            error.add_note(f"{target} is not back as it was found: type  breakeven recover {target}")
        raise


async def ready(
    service: Service,
    limit_s: float,
    changed: bool,
    began: float | None,
    probes: Sequence[Prompt],
    concurrency: int,
    watch: Callable[[Progress], None],
) -> Ready:
    """Wait, and keep how long it took for the next time. Raises what `wait_until_ready` raises."""
    target = service.found.target
    usual_s = last_start_s(target, changed)
    wanted = Wanted(service.endpoint, limit_s, concurrency, probes, usual_s=usual_s, is_returning=not changed)
    answers = await wait_until_ready(service.lifecycle, service.dialect, wanted, began=began, watch=watch)
    with suppress(StorageError):
        keep_start_s(target, changed, answers.seconds)
    return answers


def operations_of(
    service: Service,
    argv: tuple[str, ...],
    candidate: SpeculationConfig,
    version: str | None = None,
    *,
    for_good: bool = False,
) -> tuple[Operation, ...]:
    """What makes the service start with `argv` of Service.candidate_argv, for the same version, in order.
    Touches nothing. Raises ServerError where what is there cannot be read."""
    files = service.dialect.files(service.found.argv, candidate, version)
    make = service.lifecycle.keep if for_good else service.lifecycle.change
    return (*_written(service, files), *make(service.found, argv))


def _written(service: Service, files: Mapping[str, str]) -> Iterator[Operation]:
    """A copy of a file of the user's can be read by those who can read that one, and by no others."""
    name = service.dialect.copied(service.found.argv)
    original = None if name is None else service.found.path(name)
    mode = None if original is None else service.host.mode(original)
    for path, text in files.items():
        yield WriteFile.on(service.host, path, text.encode(), DEFAULT_MODE if mode is None else mode)
        if mode is not None and not mode & OTHERS_READ and service.found.target.startswith(AS_ROOT):
            yield RunCommand(("chown", f"--reference={original}", "--", path))
