"""LiveChange: a service runs changed, and comes back as it was found, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TypeVar

from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import BreakevenError, StorageError, UsageError
from breakeven.servers import recovery
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.operation_kinds import WriteFile
from breakeven.servers.operations import Operation
from breakeven.servers.readiness import Progress, Ready, Wanted, wait_until_ready
from breakeven.servers.start_times import keep_start_s, last_start_s
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification
from breakeven.trial.live_interrupts import heeded, undisturbed
from breakeven.trial.live_records import START_LIMIT_S, LivePlan, Service, Watch
from breakeven.workload.prompts import Prompt

Told = TypeVar("Told")

CONTAINERS = ("docker", "compose", "kubernetes")


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

        async def verify(verification: Verification, lifecycle: Lifecycle) -> None:
            self.baseline = await self._ready(False, began)

        service, touched = self.service, self.journal.record.touched
        await recovery.put_back(self.journal, service.host, service.lifecycle, verify, self._say)
        if service.ends_with_us and touched and restart:
            self._say(f"restarting {service.found.target} as it was")
            await service.lifecycle.restart()
            self.baseline = await self._ready(False, began)
        self.is_back = True

    async def _ready(
        self, changed: bool, began: float | None, probes: Sequence[Prompt] = (), concurrency: int = 1
    ) -> Ready:
        """A baseline that answers late is better than one that is given up."""
        limit_s = self.plan.start_limit_s if changed else max(self.plan.start_limit_s, START_LIMIT_S)
        return await ready(self.service, limit_s, changed, began, probes, concurrency, self._progress)

    def _now(self) -> float | None:
        """A person may take hours to restart a server: that is no part of its start."""
        return None if self.service.lifecycle.kind == "attached" else monotonic()

    def _say(self, line: str) -> None:
        told(self.watch.said, line)

    def _progress(self, progress: Progress) -> None:
        told(self.watch.starting, progress)


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
        heeded(say),
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
                await undisturbed(_put_back(change, restart=not is_interrupted), say)


async def _put_back(change: LiveChange, restart: bool) -> None:
    target = change.service.found.target
    try:
        await change.put_back(restart)
    except BreakevenError as error:
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
    wanted = Wanted(service.endpoint, limit_s, concurrency, probes, usual_s=last_start_s(target, changed))
    answers = await wait_until_ready(service.lifecycle, service.dialect, wanted, began=began, watch=watch)
    with suppress(StorageError):
        keep_start_s(target, changed, answers.seconds)
    return answers


def operations_of(
    service: Service, argv: tuple[str, ...], candidate: SpeculationConfig, *, for_good: bool = False
) -> tuple[Operation, ...]:
    """What makes the service start with the candidate, in order. Touches nothing.

    Raises UsageError where the engine takes it from a file that cannot be put where the server runs.
    """
    files = service.dialect.files(service.found.argv, candidate)
    if files and service.lifecycle.kind in CONTAINERS:
        raise UsageError(
            f"{service.dialect.title} takes this from {', '.join(files)}, which is inside a container: put "
            "the file where the container sees it, and name it on its command line"
        )
    written = (WriteFile.on(service.host, path, text.encode()) for path, text in files.items())
    make = service.lifecycle.keep if for_good else service.lifecycle.change
    return (*written, *make(service.found, argv))
