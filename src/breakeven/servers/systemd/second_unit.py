"""SecondUnit: a unit beside the service, for those who want the original not to be changed at all.

The second is a copy of the effective unit under another name, with another command line; it lies under /run,
so that a reboot takes it away. Only one of the two runs at a time, as both want the same GPUs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import ClassVar

from breakeven.errors import UsageError
from breakeven.servers.lifecycle import Found, Kind, Lifecycle, State
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.operations import Host, Operation
from breakeven.servers.systemd import dependents, dropin, shown
from breakeven.servers.systemd.effective import EffectiveUnit
from breakeven.servers.systemd.lifecycle import SystemdLifecycle
from breakeven.servers.systemd.manager import RELOAD_TIMEOUT_S
from breakeven.servers.systemd.reading import Reading
from breakeven.servers.systemd.unit_name import UnitName

STOP_TIMEOUT_S = 600.0
"""A large model takes minutes to let go of its GPUs, and TimeoutStopSec= may say longer than its default."""
_HEAD = "# Written by breakeven, which takes it away again: breakeven recover\n"
_NAME_SPECIFIER = re.compile(r"%([%nNpPiIjJf])")
_NOT_LOADED = "not loaded"


class SecondUnit(Lifecycle):
    """The original until it is changed, and the second unit from then until that is undone."""

    kind: ClassVar[Kind] = "systemd"

    def __init__(self, host: Host, unit: str, name: str, user: bool = False) -> None:
        """Raises UsageError for names that no services have, or the same one twice."""
        self.host = host
        self.first = SystemdLifecycle(host, unit, user)
        self.second = SystemdLifecycle(host, name, user)
        if self.first.name == self.second.name:
            raise UsageError(f"--as-new-unit {name}: give another name than the unit's own")

    @property
    def look_s(self) -> float:
        return self.host.look_s

    async def inspect(self) -> Found:
        found = await self.first.inspect()
        await self._check_not_triggered()
        name = self.second.name.full
        if (await self.second.manager.show(name, ("LoadState",))).get("LoadState") != "not-found":
            raise UsageError(f"--as-new-unit {name}: there is a unit of that name, give another")
        self.second.log_file = self.first.log_file
        return found

    async def _check_not_triggered(self) -> None:
        """Raises UsageError where a socket, timer or path may start the original beside the second unit."""
        manager, first = self.first.manager, self.first.name.full
        for trigger in self.first.reading.properties.get("TriggeredBy", "").split():
            if (await manager.show(trigger, ("ActiveState",))).get("ActiveState") in dependents.ACTIVE:
                raise UsageError(
                    f"{trigger} may start {first} beside the second unit: leave out --as-new-unit, or type  "
                    f"{' '.join(manager.systemctl)} stop {trigger}  first"
                )

    async def check_rights(self) -> None:
        """Raises UsageError where the units could not be changed."""
        await self.first.check_rights()

    @property
    def path(self) -> str:
        """Of the second unit's file."""
        unit_path, user = self.first.reading.unit_path, self.first.manager.user
        return f"{dropin.folder(unit_path, user, 'until reboot')}/{self.second.name.full}"

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """Undone in reverse order: the second is stopped, its file goes, and the first is started again, if
        it ran, with what went down with it. `restart` starts the second."""
        systemctl, reload = self.first.manager.systemctl, self.first.manager.reload
        first, second = self.first.name.full, self.second.name.full
        back = [RunCommand(None, (*systemctl, "start", "--no-block", "--", first))] if self._ran() else []
        return (
            *dependents.started_again(self.first.manager, self.first.dependents),
            *back,
            RunCommand(None, reload, timeout_s=RELOAD_TIMEOUT_S),
            WriteFile.on(
                self.host,
                self.path,
                copy(self.first.reading, self.second.name, argv),
                self.first.reading.mode,
            ),
            RunCommand(reload, timeout_s=RELOAD_TIMEOUT_S),
            RunCommand((*systemctl, "stop", "--", first), timeout_s=STOP_TIMEOUT_S),
            RunCommand(
                None,
                (*systemctl, "stop", "--", second),
                nothing_to_undo=(_NOT_LOADED,),
                timeout_s=STOP_TIMEOUT_S,
            ),
        )

    def _ran(self) -> bool:
        return self.first.reading.properties.get("ActiveState") in dependents.ACTIVE

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        command = self.first.reading.command
        return shown.diff(self.first.name.full, command, command.with_argv(argv), self.path)

    @property
    def _current(self) -> SystemdLifecycle:
        return self.first if self.host.read(self.path) is None else self.second

    async def restart(self) -> None:
        await self._current.restart()

    async def state(self) -> State:
        return await self._current.state()

    async def returning_state(self) -> State:
        return await self._current.returning_state()

    async def runs_as_found(self) -> bool:
        return self._current is self.first and await self.first.runs_as_found()

    async def made_of(self) -> dict[str, str | None]:
        """Both units read the same files."""
        return await self._current.files_read(self.first.reading)

    async def logs(self) -> AsyncGenerator[str, None]:
        async with aclosing(self._current.logs()) as lines:
            async for line in lines:
                yield line


def copy(reading: Reading, name: UnitName, argv: tuple[str, ...]) -> bytes:
    """The effective unit as one file, with another command line. Specifiers that tell of its name are filled
    in from the original's, whose folders and instance are meant. Drop-ins that both have are left out."""
    names = reading.name.specifiers()
    own = {path: data for path, data in reading.effective.files.items() if not _is_shared(path, name)}
    lines: list[str] = []
    section = ""
    for one in EffectiveUnit(own).assignments:
        if one.section == "Install" or (one.section, one.name) == ("Service", "ExecStart"):
            continue
        if one.section != section:
            section = one.section
            lines.append(f"[{section}]")
        lines.append(f"{one.name}={_renamed(one.value, names)}")
    command = _renamed(reading.command.with_argv(argv).text(), names)
    return (_HEAD + "\n".join([*lines, "[Service]", f"ExecStart={command}"]) + "\n").encode()


def _is_shared(path: str, name: UnitName) -> bool:
    """Whether a drop-in is one of all services, or of a family that the second unit is of too."""
    folder = PurePosixPath(path).parent.name
    return folder == "service.d" or folder in {f"{one}.d" for one in name.dropin_names()}


def _renamed(value: str, names: Mapping[str, str]) -> str:
    return _NAME_SPECIFIER.sub(
        lambda found: found[0] if found[1] == "%" else names[found[1]].replace("%", "%%"), value
    )
