"""A service on a fake machine: a unit, a drop-in that may change it, and what runs of what they said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from breakeven.errors import ServerError
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.lifecycle import Found, Kind, Lifecycle, State
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.operations import Completed, Operation
from breakeven.servers.undo_record import Verification

UNIT = "/etc/systemd/system/vllm.service"
DROPIN = f"{UNIT}.d/90-breakeven.conf"
RELOAD = ("systemctl", "daemon-reload")
RESTART = ("systemctl", "restart", "vllm.service")
VERIFICATION = Verification("http://127.0.0.1:8000/v1", "m")
FOUND = Found(
    "systemd:vllm.service", ("vllm", "serve", "m"), {"HF_TOKEN": "hush"}, {UNIT: "Environment=hush"}
)
CANDIDATE = (*FOUND.argv, "--speculative-config", "{}")


class Machine(FakeHost):
    """Files on disk, what the supervisor has loaded of them, and what runs."""

    def __init__(self) -> None:
        super().__init__(self._systemctl, {UNIT: b"ExecStart=vllm serve m"})
        self.loaded = self.running = self._on_disk()
        self.restarts = 0

    def _on_disk(self) -> bytes:
        return self.files.get(DROPIN, self.files[UNIT])

    def _systemctl(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        if argv == RELOAD:
            self.loaded = self._on_disk()
        elif argv == RESTART:
            self.running = self.loaded
            self.restarts += 1
        else:
            return Completed(1, "", f"unknown {argv}")
        return Completed(0, "", "")

    def crash_and_come_back(self) -> None:
        """As with Restart=on-failure, or after a power cut."""
        self.loaded = self.running = self._on_disk()

    def everything(self) -> tuple[object, ...]:
        return (*self.snapshot(), self.loaded, self.running)


class Service(Lifecycle):
    """Its restarts and looks go through the machine, so that they can be the last thing that happens."""

    kind: ClassVar[Kind] = "systemd"
    look_s: float = 0.02

    def __init__(self, machine: Machine, since_s: float | None = None) -> None:
        self.machine = machine
        self.since_s = since_s

    async def inspect(self) -> Found:
        return FOUND

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        dropin = f"ExecStart={' '.join(argv)}".encode()
        return (
            RunCommand(None, RELOAD),
            WriteFile.on(self.machine, DROPIN, dropin, 0o600),
            RunCommand(RELOAD),
        )

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return ""

    async def restart(self) -> None:
        done = await self.machine.run(RESTART)
        if done.returncode:
            raise ServerError("restart failed")

    async def state(self) -> State:
        return State("running", since_s=self.since_s)

    async def logs(self) -> AsyncIterator[str]:
        for line in ("starting", "ready"):
            yield line
