"""FakeSystemd: a Host on which a systemd runs in memory, faithful where breakeven meets it.

Files count once they are read (daemon-reload). A failing service is restarted as its unit says, until that
was too often, which only reset-failed forgets. What `extra` says depends on a service goes down with it.
Time passes only by `advance` and with each command.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from breakeven.errors import ServerError
from breakeven.servers.fake.host import FakeHost, parents
from breakeven.servers.fake.units import SYSTEM_PATH, USER_PATH, UnitFiles, find
from breakeven.servers.operations import Completed
from breakeven.servers.systemd.effective import EffectiveUnit
from breakeven.servers.systemd.env_file import variables
from breakeven.servers.systemd.expand import with_specifiers, with_variables
from breakeven.servers.systemd.unit_name import UnitName

COMMAND_S = 0.01
START_LIMIT = 5
FOREVER_S = 3600.0
SIGKILL = 9


@dataclass(frozen=True, slots=True)
class Ran:
    """What starting a command line comes to."""

    says: tuple[str, ...] = ()
    exit_code: int | None = None
    """None: it lives."""
    result: str = "exit-code"
    """As systemd names a failure, such as oom-kill: then SIGKILL ended it."""


Program = Callable[[tuple[str, ...], Mapping[str, str]], Ran]
"""From words and environment, specifiers and variables filled in."""


@dataclass(slots=True)
class Service:
    """How one service is."""

    files: UnitFiles
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    pid: int = 0
    argv: tuple[str, ...] = ()
    exit_code: int = 0
    exit_status: int = 0
    restarts: int = 0
    starts: int = 0
    """Since systemd last forgot them: START_LIMIT is the most."""
    started_us: int = 0
    changed_us: int = 0


class FakeSystemd(FakeHost):
    """`answers`: commands that are answered so, instead of being done. `extra`: further properties of units,
    by name, such as RequiredBy."""

    def __init__(
        self,
        files: dict[str, bytes] | None = None,
        program: Program = lambda argv, environment: Ran(),
        user: bool = False,
        uid: int = 0,
    ) -> None:
        super().__init__(self._done, files)
        self.program = program
        self.user = user
        self.uid = uid
        self.answers: dict[tuple[str, ...], Completed] = {}
        self.extra: dict[str, dict[str, str]] = {}
        self.written_s: dict[str, int] = {}
        """When files were last written, since the epoch."""
        for folder in self.unit_path:
            self.folders |= {*parents(folder), folder}
        self._read = set(self.folders)
        """Folders when units were last read."""
        self._now_s = 1000.0
        self._next_pid = 4000
        self._services: dict[str, Service] = {}
        self._journal: list[tuple[int, str, str]] = []

    @property
    def unit_path(self) -> tuple[str, ...]:
        return USER_PATH if self.user else SYSTEM_PATH

    def service(self, unit: str) -> Service:
        """As systemd has it; read from its files when first asked for."""
        if unit not in self._services or self._services[unit].files.load_state == "not-found":
            self._services[unit] = Service(find(unit, self.files, self.unit_path))
        return self._services[unit]

    def advance(self, seconds: float) -> None:
        """Time passes: services that wait to be restarted are."""
        self._now_s += seconds
        for unit, service in self._services.items():
            if service.sub == "auto-restart":
                service.restarts += 1
                self._start(unit, service)

    def crash(self, unit: str, ran: Ran) -> None:
        """Its process ends."""
        self._end(unit, self.service(unit), ran)

    def _done(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        self._now_s += COMMAND_S
        if argv in self.answers:
            return self.answers[argv]
        if argv == ("id", "-u"):
            return Completed(0, f"{self.uid}\n", "")
        if argv[:2] == ("stat", "--format=%Y %n"):
            there = [path for path in argv[3:] if path in self.files]
            return Completed(0, "".join(f"{self.written_s.get(path, 0)} {path}\n" for path in there), "")
        if argv[:1] == ("stat",):
            return Completed(0, f"{len(self.files.get(argv[-1], b''))}\n", "")
        if argv[:2] == ("find", "-L"):
            return Completed(0, self._find(argv[2 : argv.index("-maxdepth")]), "")
        if argv[:1] != ("systemctl",):
            raise ServerError(f"{argv[0]} cannot be started: No such file or directory")
        return self._systemctl(list(argv[1:]))

    def _find(self, places: Sequence[str]) -> str:
        """Of all files, those that are one of the places or in it."""
        there = [
            path
            for place in places
            for path in self.files
            if place in (path, str(PurePosixPath(path).parent))
        ]
        return "".join(f"f {hash(path)} {path}\n" for path in there)

    def _systemctl(self, words: list[str]) -> Completed:
        if ("--user" in words) != self.user:
            return Completed(1, "", "Failed to connect to bus: No medium found")
        words = [word for word in words if word not in ("--user", "--no-block", "--")]
        verb, rest = words[0], words[1:]
        if verb == "show":
            return Completed(0, self._show(rest), "")
        if verb == "show-environment":
            return Completed(0, "HOME=/home/llm\nPATH=/usr/bin\n", "")
        if verb == "daemon-reload":
            return self._reload()
        if verb in ("restart", "start", "stop", "reset-failed"):
            done = [self._act(verb, unit) for unit in rest]
            return next((one for one in done if one.returncode), done[-1])
        return Completed(1, "", f"Unknown command verb {verb}.")

    def _show(self, words: Sequence[str]) -> str:
        names = words[0].removeprefix("--property=").split(",")
        if len(words) == 1:
            return f"UnitPath={' '.join(self.unit_path)}\n"
        properties = self._properties(words[1])
        return "".join(f"{name}={properties.get(name, '')}\n" for name in names)

    def _properties(self, unit: str) -> dict[str, str]:
        service = self.service(unit)
        effective = EffectiveUnit(service.files.contents)
        return {
            "Id": unit,
            "LoadState": service.files.load_state,
            "FragmentPath": service.files.fragment,
            "DropInPaths": " ".join(service.files.dropins),
            "NeedDaemonReload": "yes" if self._is_changed(unit, service) else "no",
            "RefuseManualStart": "no",
            "RefuseManualStop": "no",
            "Type": effective.value("Type") or "simple",
            "TimeoutStartUSec": effective.value("TimeoutStartSec") or "1min 30s",
            "ActiveState": service.active,
            "SubState": service.sub,
            "Result": service.result,
            "MainPID": str(service.pid),
            "ExecMainCode": str(service.exit_code),
            "ExecMainStatus": str(service.exit_status),
            "NRestarts": str(service.restarts),
            "Job": "0",
            "StateChangeTimestampMonotonic": str(service.changed_us),
            "InactiveExitTimestampMonotonic": str(service.started_us),
            "ExecMainStartTimestampMonotonic": str(service.started_us),
            **self.extra.get(unit, {}),
        }

    def _is_changed(self, unit: str, service: Service) -> bool:
        """systemd does not look into folders that were not there when it last read its units."""
        known = {
            path: data for path, data in self.files.items() if str(PurePosixPath(path).parent) in self._read
        }
        return find(unit, known, self.unit_path) != service.files

    def _reload(self) -> Completed:
        self._read = set(self.folders)
        for unit, service in self._services.items():
            service.files = find(unit, self.files, self.unit_path)
        return Completed(0, "", "")

    def _act(self, verb: str, unit: str) -> Completed:
        service = self.service(unit)
        if service.files.load_state == "not-found" and not service.pid:
            return Completed(5, "", f"Failed to {verb} {unit}: Unit {unit} not loaded.")
        if service.files.load_state == "masked" and verb != "stop":
            return Completed(1, "", f"Failed to {verb} {unit}: Unit {unit} is masked.")
        if verb == "reset-failed":
            service.restarts = service.starts = 0
            service.active = "inactive" if service.active == "failed" else service.active
        going = [one for one in self._dependents(unit) if self.service(one).pid]
        if verb in ("restart", "stop"):
            self._set(service, "inactive", "dead", "success")
            service.pid = service.exit_code = service.exit_status = 0
        if verb == "restart" or (verb == "start" and not service.pid):
            for needed in self.extra:
                if unit in self._dependents(needed, "RequiredBy", "BoundBy"):
                    self._act("start", needed)
            service.restarts = 0
            self._now_s += COMMAND_S
            service.started_us = self._us()
            self._start(unit, service)
        if verb in ("restart", "stop"):
            for one in going:
                self._act("restart" if service.pid else "stop", one)
        return Completed(0, "", "")

    def _dependents(self, unit: str, *kinds: str) -> list[str]:
        kinds = kinds or ("RequiredBy", "BoundBy", "ConsistsOf")
        return [name for kind in kinds for name in self.extra.get(unit, {}).get(kind, "").split()]

    def _start(self, unit: str, service: Service) -> None:
        service.starts += 1
        if service.starts > START_LIMIT:
            self._set(service, "failed", "failed", "start-limit-hit")
            return
        specifiers = UnitName(unit).specifiers() | {"h": "/home/llm" if self.user else "/root"}
        effective = EffectiveUnit(service.files.contents, specifiers)
        environment = dict(effective.environment)
        for path in effective.environment_files:
            environment |= variables(self.files.get(path.removeprefix("-"), b""))
        command = effective.exec_start[0]
        words = tuple(with_specifiers(word, specifiers) for word in command.argv)
        service.argv = with_variables(words, environment) if command.fills_in_variables else words
        service.pid, self._next_pid = self._next_pid, self._next_pid + 1
        service.exit_code = service.exit_status = 0
        self._set(service, "active", "running", "success")
        ran = self.program(service.argv, environment)
        self._journal += [(self._us(), unit, line) for line in ran.says]
        if ran.exit_code is not None or ran.result == "oom-kill":
            self._end(unit, service, ran)

    def _end(self, unit: str, service: Service, ran: Ran) -> None:
        killed = ran.result == "oom-kill"
        service.exit_code, service.exit_status = (2, SIGKILL) if killed else (1, ran.exit_code or 0)
        service.pid = 0
        for one in self._dependents(unit, "BoundBy"):
            self._act("stop", one)
        if not killed and not ran.exit_code:
            self._set(service, "inactive", "dead", "success")
        elif EffectiveUnit(service.files.contents).value("Restart") in ("always", "on-failure"):
            self._set(service, "activating", "auto-restart", ran.result)
        else:
            self._set(service, "failed", "failed", ran.result)

    def _set(self, service: Service, active: str, sub: str, result: str) -> None:
        service.active, service.sub, service.result = active, sub, result
        service.changed_us = self._us()

    def _us(self) -> int:
        return int(self._now_s * 1e6)

    async def lines(self, argv: tuple[str, ...]) -> AsyncGenerator[str, None]:
        """Of `journalctl --follow` and of `tail --follow`: what there is, and then nothing until closed."""
        self.commands.append(argv)
        if argv[0] == "tail":
            start = int(argv[argv.index("--bytes") + 1]) - 1 if "--bytes" in argv else 0
            said = self.files.get(argv[-1], b"")[start:].decode().splitlines()
        else:
            unit = next(word.partition("=")[2] for word in argv if "unit=" in word)
            said = [_entry(at_us, text) for at_us, name, text in self._journal if name == unit]
        for line in said:
            yield line
        await asyncio.sleep(FOREVER_S)

    def read(self, path: str) -> bytes | None:
        if path == "/proc/uptime":
            return f"{self._now_s:.2f} 0.00\n".encode()
        for service in self._services.values():
            if service.pid and path == f"/proc/{service.pid}/cmdline":
                return b"".join(word.encode() + b"\0" for word in service.argv)
        return super().read(path)


def _entry(at_us: int, text: str) -> str:
    return json.dumps({"__MONOTONIC_TIMESTAMP": str(at_us), "MESSAGE": text})
