"""What is killed: a trial of a service of fault_sites.py, and its recovery, each in a process of its own.

Its steps are counted before and after each entry of the journal and each touch of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from breakeven.cli import main
from breakeven.client.endpoint import Endpoint
from breakeven.client.timeouts import Timeouts
from breakeven.engines.dialects import dialect_of
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import BreakevenError
from breakeven.servers import host as host_module
from breakeven.servers import readiness, recovery, startup_log, undo_journal
from breakeven.servers.attached import ask
from breakeven.servers.attached import lifecycle as attached
from breakeven.servers.attached.person import Terminal
from breakeven.servers.docker import container, stop
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.operations import Completed
from breakeven.servers.systemd import SecondUnit
from breakeven.servers.targets import TargetOptions, lifecycle_of
from breakeven.trial.live_change import changing
from breakeven.trial.live_plan import LivePlan
from breakeven.trial.live_service import Service
from breakeven.trial.live_watch import Watch
from breakeven.trial.plan import TrialPlan
from breakeven.workload.prompts import Prompt, Sampling, Workload
from tests.e2e.fault_sites import Reached
from tests.e2e.systemd_namespace import NamespaceHost
from tests.unit.servers.containers import candidate

LOOKING = {"show", "show-environment", "inspect", "version", "ps", "config", "get", "auth", "logs", "rollout"}
"""Words of commands that change nothing; of others it is the program."""
_ID = re.compile(r"[0-9a-f]{64}")
LOOKERS = {"id", "stat", "find", "test"}
PROMPTS = Workload("two", tuple(Prompt(f"p{n}", "c", text=f"prompt {n}") for n in range(2)))


@dataclass(frozen=True)
class Task:
    """One trial, or recovery, that is to be killed, and where."""

    target: str
    second_unit: str | None
    scenario: str
    address: str
    """Of the machine: its socket, or the process that is number 1 on it."""
    url: str
    state: str
    """XDG_STATE_HOME."""
    kill_at: int | None = None
    """A step; None: it comes to its end."""
    full_at: int | None = None
    """From this write of the journal on, the disk is full, …"""
    fits_bytes: int = 0
    """… but for so many bytes."""


class Steps:
    """Counts and names them, and kills this process at one."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.names: list[str] = []

    def step(self, name: str) -> None:
        if len(self.names) == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.names.append(name)


class Stepped:
    """A machine, on which every change is two steps: before it, and once it took effect."""

    look_s = 0.02

    def __init__(self, address: str, steps: Steps) -> None:
        self.machine: Any = NamespaceHost(int(address)) if address.isdigit() else Reached(address)
        self.steps = steps

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        is_ping = stdin is not None and b"/_ping" in stdin
        is_look = argv[0] in LOOKERS or LOOKING & set(argv) or is_ping
        words = (_ID.sub("ID", word) for word in argv if not word.startswith("/"))
        name = " ".join(words)[:60]
        if not is_look:
            self.steps.step(f"before: {name}")
        done: Completed = await self.machine.run(argv, stdin, timeout_s, hold_stdin)
        if not is_look:
            self.steps.step(f"after:  {name}")
        return done

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._changed("write", path, path, data, mode)

    def remove(self, path: str, folders: tuple[str, ...] = ()) -> None:
        self._changed("remove", path, path, folders)

    def told(self, text: str) -> None:
        self._changed("told", "", text)

    def _changed(self, name: str, what: str, *given: Any) -> None:
        said = f"{name} {what}".rstrip()
        self.steps.step(f"before: {said}")
        getattr(self.machine, name)(*given)
        self.steps.step(f"after:  {said}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


def trial(task: Task, said: Connection) -> None:
    """Sends the names of the steps, or the exception that it ended with."""
    steps = Steps(task.kill_at)
    host = Stepped(task.address, steps)
    _set_up(task, host)
    _count_entries(steps, task)
    try:
        asyncio.run(_trial(task, host, steps))
    except BreakevenError as error:
        said.send((steps.names, f"{type(error).__name__}: {error}"))
    else:
        said.send((steps.names, None))


def recover(task: Task, said: Connection) -> None:
    """`breakeven recover`, on that machine. Sends the names of its steps."""
    steps = Steps(task.kill_at)
    machine = Stepped(task.address, steps)
    _set_up(task, machine)
    _count_entries(steps, task)
    host_module.LocalHost = lambda: machine  # type: ignore[assignment,misc]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(str(Path(task.state).parent / "recover.err"), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    sys.argv = ["breakeven", "recover"]
    try:
        main()
    finally:
        said.send((steps.names, None))


def _set_up(task: Task, host: Stepped) -> None:
    os.environ["XDG_STATE_HOME"] = task.state
    readiness.PAUSE_S = 0.01
    recovery.FIRST_PAUSE_S = 0.01
    stop.LOOK_S, stop.SLACK_S, container.STOP_GRACE_S = 0.01, 0.0, 0.05
    startup_log.DRAIN_S = 0.01
    ask.LOOK_S = 0.01

    async def look(endpoint: Endpoint) -> Any:
        return host.seen()

    ask.look = attached.look = look
    Terminal.tell = lambda self, text: host.told(text)  # type: ignore[method-assign]


def _count_entries(steps: Steps, task: Task) -> None:
    real, written = undo_journal._write, [0]

    def write(descriptor: int, entry: Any) -> None:
        name = f"{entry['entry']} {entry.get('n', entry.get('how', ''))}".rstrip()
        steps.step(f"before: journal, {name}")
        if written[0] == task.full_at:
            _fill_the_disk(os.fstat(descriptor).st_size + task.fits_bytes)
        written[0] += 1
        real(descriptor, entry)
        steps.step(f"after:  journal, {name}")

    undo_journal._write = write


def _fill_the_disk(most_bytes: int) -> None:
    """No file may become longer any more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))


async def _trial(task: Task, host: Stepped, steps: Steps) -> None:
    lifecycle = _lifecycle(task, host)
    found = await lifecycle.inspect()
    endpoint = Endpoint(task.url, model="fake-model")
    timeouts = Timeouts(connect_s=5, first_token_s=5, idle_s=5)
    service = Service(lifecycle, dialect_of(found.argv), host, found, endpoint, timeouts=timeouts)
    limit_s = 0.3 if task.scenario in ("hangs", "batch") else 20.0
    plan = LivePlan(
        TrialPlan(PROMPTS, Sampling(), concurrency=2), (SpeculationConfig("ngram", 5),), start_limit_s=limit_s
    )

    def operations() -> Any:
        return lifecycle.change(found, candidate(found))

    begun = operations()
    async with changing(service, plan, Watch()) as change:
        with _stepped(steps):
            await change.start(begun, concurrency=2)
        if task.scenario == "kept":
            await change.keep(lambda: lifecycle.keep(found, candidate(found)))


@contextlib.contextmanager
def _stepped(steps: Steps) -> Iterator[None]:
    try:
        yield
    finally:
        steps.step("the candidate runs, or has failed")


def _lifecycle(task: Task, host: Stepped) -> Lifecycle:
    kind, _, place = task.target.partition(":")
    if task.second_unit is not None:
        return SecondUnit(host, place, task.second_unit)
    options = TargetOptions(command=("vllm", "serve", "m"), endpoint=Endpoint(task.url, model="fake-model"))
    return lifecycle_of(f"attached:{task.url}" if kind == "attached" else task.target, host, options)
