"""ComposeUp: a service's container is made anew with our file, and undone, without it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.servers.compose.project import Project
from breakeven.servers.docker.client import SLOW_TIMEOUT_S, DockerClient
from breakeven.servers.operation_kinds import run_checked
from breakeven.servers.operations import Host


@dataclass(frozen=True, slots=True)
class ComposeUp:
    """Compose fills variables of its files in from the shell that it is typed in: a recovery in another one
    could start something else. So it is undone only where that gives the service as it was found."""

    op: ClassVar[str] = "compose_up"

    project: Project
    found_hash: str
    """Of the service's configuration as it was found."""

    def describe(self) -> str:
        return f"run {shlex.join(self.project.up(override=True))}"

    def describe_undo(self) -> str:
        return f"run {shlex.join(self.project.up(override=False))}"

    async def do(self, host: Host) -> None:
        await run_checked(host, self.project.up(override=True), timeout_s=SLOW_TIMEOUT_S)

    async def undo(self, host: Host) -> None:
        if await hash_now(host, self.project) != self.found_hash:
            raise UsageError(
                f"service {self.project.service} would not come back as it was found: its files, or "
                "variables that they take from the shell, are others by now. Type  breakeven recover  in the "
                "shell, or with the variables, that it was started with; or type  "
                f"{shlex.join(self.project.up(False))}  and then  breakeven recover --forget"
            )
        await run_checked(host, self.project.up(override=False), timeout_s=SLOW_TIMEOUT_S)
        if not await DockerClient(host).containers(*self.project.labels(self.found_hash)):
            raise ServerError(
                f"service {self.project.service} did not come back as it was found: an  up  that was cut off "
                "may still be under way"
            )

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "project": asdict(self.project), "found_hash": self.found_hash}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ComposeUp:
        kept = value["project"]
        files = {name: tuple(kept[name]) for name in ("files", "env_files")}
        return cls(Project(**{**kept, **files}), value["found_hash"])


async def hash_now(host: Host, project: Project) -> str:
    """Of the service's configuration as its files and variables have it now. Raises ServerError."""
    done = await run_checked(host, project.argv("config", "--hash", project.service))
    words = done.stdout.split()
    return words[-1] if words else ""
