"""SystemdLifecycle: a server that is a service of the system's systemd, or of a user's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from breakeven.errors import BreakevenError, UsageError
from breakeven.secrets import masked_argv, masked_environment
from breakeven.servers.lifecycle import Found, Kind, Lifecycle, State
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.operations import Host, Operation
from breakeven.servers.systemd import dependents, dropin, logs, refusal, shown, state
from breakeven.servers.systemd.made_of import files_read
from breakeven.servers.systemd.manager import RELOAD_TIMEOUT_S, Manager, number, seconds_since
from breakeven.servers.systemd.reading import UPTIME, Reading
from breakeven.servers.systemd.unit_name import UnitName
from breakeven.servers.systemd.warnings import warnings


class SystemdLifecycle(Lifecycle):
    """Changed by a drop-in; the unit's own files are never touched."""

    kind: ClassVar[Kind] = "systemd"

    def __init__(self, host: Host, unit: str, user: bool = False) -> None:
        """Raises UsageError for a name that no service has."""
        self.host = host
        self.name = UnitName.parse(unit)
        self.manager = Manager(host, user)
        self._reading: Reading | None = None
        self.dependents: tuple[str, ...] = ()
        """Units that run and go down with it, as the latest `inspect` saw."""
        self._asked_us: int | None = None
        """When we last had it restarted, on the machine's monotonic clock."""
        self._known_restarts = 0
        """By systemd itself since then, of a service that came back with them."""
        self.log_file: str | None = None
        """Where its output goes, if not to the journal."""
        self._log_size: int | None = None
        """Of the log file when we last had it restarted."""

    @property
    def look_s(self) -> float:
        return self.host.look_s

    @property
    def target(self) -> str:
        return f"systemd{'-user' if self.manager.user else ''}:{self.name.full}"

    async def inspect(self) -> Found:
        self._reading = reading = await Reading.of(self.manager, self.name)
        self.name, self.log_file = reading.name, reading.log_file
        runs = shown.running_words(reading.running) if reading.running else ""
        refusal.check_runs_so(self.name.full, reading.runs_otherwise, runs, " ".join(self.manager.systemctl))
        self.dependents = await dependents.active(self.manager, reading.properties)
        files = {path: shown.unit(data) for path, data in reading.effective.files.items()}
        running = {"running": runs} if runs else {}
        return Found(
            self.target,
            reading.command.argv,
            masked_environment(reading.environment),
            files | running,
            masked_argv(reading.as_run),
            warnings(reading),
            reading.folder,
        )

    async def check_rights(self) -> None:
        """Raises UsageError where this unit could be looked at but not changed."""
        if not self.manager.user and (await self.host.run(("id", "-u"))).stdout.strip() != "0":
            raise UsageError(
                f"changing {self.name.full} needs root: add --sudo, or run breakeven as root; "
                "--dry-run needs neither"
            )

    @property
    def reading(self) -> Reading:
        """What the latest `inspect` saw."""
        if self._reading is None:
            raise RuntimeError("inspect() comes first")
        return self._reading

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """Lasts until a reboot, which undoes it."""
        return self._with_dropin(argv, "until reboot")

    def keep(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """Like `change`, for good: for a winner that the user wants to stay, once the trial's own change is
        undone."""
        return self._with_dropin(argv, "for good")

    def _with_dropin(self, argv: tuple[str, ...], place: dropin.Place) -> tuple[Operation, ...]:
        """Undone in reverse order: the file goes, systemd reads its units again, and what went down with the
        service is started."""
        text = dropin.text(self.reading.command.with_argv(argv).text(), place)
        path, reload = self.dropin_path(place), self.manager.reload
        return (
            *dependents.started_again(self.manager, self.dependents),
            RunCommand(None, reload, timeout_s=RELOAD_TIMEOUT_S),
            WriteFile.on(self.host, path, text, self.reading.mode),
            RunCommand(reload, timeout_s=RELOAD_TIMEOUT_S),
        )

    def dropin_path(self, place: dropin.Place = "until reboot") -> str:
        folder = dropin.folder(self.reading.unit_path, self.manager.user, place)
        return f"{folder}/{self.name.full}.d/{dropin.name(self.reading.dropins, place)}"

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        command = self.reading.command
        return shown.diff(self.name.full, command, command.with_argv(argv), self.dropin_path())

    async def restart(self) -> None:
        """What systemd counted of earlier failures is forgotten first: it would refuse to start a service
        that crashed too often, also when the cause is gone."""
        await self.manager.forget_failures(self.name.full)
        self._asked_us = await self._now_us()
        self._known_restarts = 0
        self._log_size = await self._size_of_log()
        await self.manager.act("restart", "--no-block", "--", self.name.full)

    async def state(self) -> State:
        known = None if self._asked_us is None else self._known_restarts
        return state.state(await self._properties(), self.host.read(UPTIME), known)

    async def returning_state(self) -> State:
        properties = await self._properties()
        self._known_restarts = number(properties, "NRestarts")
        return state.returning(properties, self.host.read(UPTIME))

    async def runs_as_found(self) -> bool:
        """By the command line of its process."""
        try:
            return (await Reading.of(self.manager, self.name)).runs_as_configured
        except BreakevenError:
            return False

    async def made_of(self) -> dict[str, str | None]:
        return await self.files_read(self.reading)

    async def files_read(self, reading: Reading) -> dict[str, str | None]:
        """The environment files of a unit, as this one's process read them. Raises ServerError."""
        return await files_read(self.manager, self.name.full, reading.environment_files)

    async def _now_us(self) -> int:
        """On the machine's monotonic clock; where /proc does not tell it, just after its latest start, which
        no later start is before."""
        if uptime := self.host.read(UPTIME):
            return int(float(uptime.split()[0]) * 1e6)
        return number(await self._properties(), "InactiveExitTimestampMonotonic") + 1

    async def _properties(self) -> dict[str, str]:
        return await self.manager.show(self.name.full, state.PROPERTIES)

    async def logs(self) -> AsyncGenerator[str, None]:
        since_us = await self._started_us()
        if self.log_file:
            lines = self.host.lines(logs.file_argv(self.log_file, self._log_size))
        else:
            age_s = seconds_since(since_us, self.host.read(UPTIME)) if since_us else 0.0
            lines = self.host.lines(logs.journal_argv(self.name.full, age_s, self.manager.user))
        async with aclosing(logs.until_over(lines, self._is_over, self.look_s)) as following:
            async for line in following:
                text = line if self.log_file else logs.message(line, since_us)
                if text is not None:
                    yield text

    async def _started_us(self) -> int:
        """When it last began to start, on the monotonic clock; waits for a restart that is under way. Where
        systemd has restarted what we had restarted, it is our restart: after it comes why the first died."""
        while True:
            properties = await self._properties()
            if self._asked_us is not None and number(properties, "NRestarts") > self._known_restarts:
                return self._asked_us
            started_us = number(properties, "InactiveExitTimestampMonotonic")
            if started_us >= (self._asked_us or 0) or not number(properties, "Job"):
                return started_us
            await asyncio.sleep(self.look_s)

    async def _is_over(self) -> bool:
        return (await self.state()).condition in ("stopped", "failed")

    async def _size_of_log(self) -> int | None:
        if self.log_file is None:
            return None
        said = (await self.host.run(("stat", "--format=%s", "--", self.log_file))).stdout.strip()
        return int(said) if said.isdigit() else 0
