"""StopContainer: the user's container is stopped, and undone, runs again and goes on running."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, ClassVar

from breakeven.errors import ServerError
from breakeven.servers.docker.client import DOCKER, SLOW_TIMEOUT_S, DockerClient
from breakeven.servers.docker.container import SHORT_ID, Container
from breakeven.servers.operation_kinds import run_checked
from breakeven.servers.operations import Host

LOOK_S = 1.0
SLACK_S = 5.0
"""More than its grace a container may take to stop."""


@dataclass(frozen=True, slots=True)
class StopContainer:
    """A `docker stop` that was cut off goes on in the daemon, and `docker start` does nothing to a container
    that has not stopped yet: so one that runs when this is undone is looked at until no stop can be left."""

    op: ClassVar[str] = "stop_container"

    id: str

    def describe(self) -> str:
        return f"run {DOCKER} stop {self.id}"

    def describe_undo(self) -> str:
        return f"run {DOCKER} start {self.id}"

    async def do(self, host: Host) -> None:
        await run_checked(host, (DOCKER, "stop", self.id), timeout_s=SLOW_TIMEOUT_S)

    async def undo(self, host: Host) -> None:
        """One that has stopped has no stop before it any more."""
        container = await self._look(host)
        until_s = monotonic() + min(container.stop_grace_s + SLACK_S, SLOW_TIMEOUT_S)
        while container.running and (left_s := until_s - monotonic()) > 0:
            await asyncio.sleep(min(LOOK_S, left_s))
            container = await self._look(host)
        if not container.running:
            await run_checked(host, (DOCKER, "start", self.id), timeout_s=SLOW_TIMEOUT_S)

    async def _look(self, host: Host) -> Container:
        found = await DockerClient(host).find(self.id)
        if found is None:
            raise ServerError(f"container {self.id[:SHORT_ID]} is gone: type  docker ps --all")
        return Container(found)

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "id": self.id}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StopContainer:
        return cls(value["id"])
