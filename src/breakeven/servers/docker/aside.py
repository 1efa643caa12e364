"""PutAside: the user's container gives its name away, and undone, has it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from breakeven.servers.docker.client import DOCKER
from breakeven.servers.docker.copy import CopyContainer
from breakeven.servers.operation_kinds import command_failed, run_checked
from breakeven.servers.operations import Host

_HAS_IT = "with the same name as its current name"
_TAKEN = "is already in use"


@dataclass(frozen=True, slots=True)
class PutAside:
    """Container `id`, known as NAME, is renamed; undone, a copy of it that has come by its name since goes:
    the daemon may make one after whoever asked for it was cut off."""

    op: ClassVar[str] = "put_aside"

    id: str
    name: str
    aside: str

    def describe(self) -> str:
        return f"run {DOCKER} rename {self.id} {self.aside}"

    def describe_undo(self) -> str:
        return f"run {DOCKER} rename {self.id} {self.name}"

    async def do(self, host: Host) -> None:
        await run_checked(host, (DOCKER, "rename", self.id, self.aside))

    async def undo(self, host: Host) -> None:
        if not await self._has_its_name(host):
            await CopyContainer(self.name, self.id).undo(host)
            await run_checked(host, (DOCKER, "rename", self.id, self.name))

    async def _has_its_name(self, host: Host) -> bool:
        """Once it was renamed; False where another one has the name."""
        argv = (DOCKER, "rename", self.id, self.name)
        done = await host.run(argv)
        if done.returncode and _TAKEN in done.stderr:
            return False
        if done.returncode and _HAS_IT not in done.stderr:
            raise command_failed(argv, done)
        return True

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "id": self.id, "name": self.name, "aside": self.aside}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PutAside:
        return cls(value["id"], value["name"], value["aside"])
