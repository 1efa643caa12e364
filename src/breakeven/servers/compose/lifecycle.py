"""ComposeLifecycle: a service of a Compose file. A second file beside the user's, which holds the changed
command and nothing else, is given to `docker compose up`; undone, `up` runs without it."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.secrets import shown_argv
from breakeven.servers.argv_diff import argv_diff
from breakeven.servers.commandline import CommandLine, read_command_line
from breakeven.servers.compose.project import Project, config_hash, project_of
from breakeven.servers.compose.up import ComposeUp, hash_now
from breakeven.servers.docker.client import DOCKER, SLOW_TIMEOUT_S, DockerClient
from breakeven.servers.docker.container import NOTED_BYTES, Container
from breakeven.servers.lifecycle import IMAGE, Found, Kind, Lifecycle, State
from breakeven.servers.operation_kinds import WriteFile, run_checked
from breakeven.servers.operations import Host, Operation
from breakeven.units import count, size

OVERRIDE_MODE = 0o600
"""A command line may hold a secret."""


class ComposeLifecycle(Lifecycle):
    """One service of one file."""

    kind: ClassVar[Kind] = "compose"

    def __init__(self, host: Host, file: str, service: str) -> None:
        self.host = host
        self.file = str(Path(file).absolute())
        self.service = service
        self._docker = DockerClient(host)
        self._line: CommandLine | None = None
        self._project: Project | None = None
        self._entrypoint: tuple[str, ...] = ()
        self._found_id: str | None = None
        self._found_hash = ""

    @property
    def look_s(self) -> float:
        return max(5.0, self.host.look_s)

    async def inspect(self) -> Found:
        container = await self._container(size=True)
        project = project_of(container)
        await self._refuse_unfit(container, project)
        self._project, self._entrypoint = project, container.entrypoint
        self._found_id, self._found_hash = container.id, config_hash(container)
        self._line = read_command_line(container.words)
        return Found(
            target=f"compose:{self.file}#{self.service}",
            argv=self._line.argv,
            environment=container.environment(),
            evidence=_evidence(container, project),
            warnings=_warnings(container),
        )

    async def check_rights(self) -> None:
        project, _ = self._inspected()
        if (await self.host.run(("test", "-w", project.directory))).returncode:
            raise UsageError(
                f"a file beside those of service {self.service} is needed, and you may not write to "
                f"{project.directory}: add --sudo"
            )

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        project, line = self._inspected()
        text = override_text(self.service, self._entrypoint, line.with_argv(argv))
        return (
            WriteFile.on(self.host, project.override, text.encode(), OVERRIDE_MODE),
            ComposeUp(project, self._found_hash),
        )

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return argv_diff(self._inspected()[1].argv, argv, found.target)

    async def restart(self) -> None:
        """As the files say now, ours included where it is there; a container that is so already goes on."""
        project = self._project or project_of(await self._container())
        override = self.host.read(project.override) is not None
        await run_checked(self.host, project.up(override), timeout_s=SLOW_TIMEOUT_S)

    async def state(self) -> State:
        container = await self._container()
        return container.state(is_new=self._found_id not in (None, container.id))

    async def returning_state(self) -> State:
        """Compose makes a new container on the way back: for a moment there is none, or both are there."""
        found = await self._containers()
        if len(found) != 1:
            return State("starting", f"service {self.service} has {count(len(found), 'container')} now")
        return found[0].returning()

    async def made_of(self) -> dict[str, str | None]:
        return {IMAGE: (await self._container()).image_id}

    async def logs(self) -> AsyncIterator[str]:
        container = await self._container()
        started = str(container.inspected["State"]["StartedAt"])
        argv = (DOCKER, "logs", "--follow", "--since", started, container.id)
        async with aclosing(self.host.lines(argv)) as lines:
            async for line in lines:
                yield line

    async def _containers(self, size: bool = False) -> list[Container]:
        """Those of the service. Raises UsageError for one of a Compose that is too old."""
        labels = (f"com.docker.compose.service={self.service}", "com.docker.compose.oneoff=False")
        found = [await self._docker.find(each, size) for each in await self._docker.containers(*labels)]
        ours = [Container(each) for each in found if each is not None]
        return [each for each in ours if self.file in project_of(each).files]

    async def _container(self, size: bool = False) -> Container:
        """The service's only one. Raises UsageError."""
        ours = await self._containers(size)
        if not ours:
            raise UsageError(
                f"no container runs service {self.service} of {self.file}: type  docker compose ls  and  "
                f"docker compose --file {self.file} up --detach {self.service}"
            )
        if len(ours) > 1:
            raise UsageError(f"service {self.service} runs in {len(ours)} containers: scale it to one first")
        return ours[0]

    async def _refuse_unfit(self, container: Container, project: Project) -> None:
        if not container.running:
            raise UsageError(f"service {self.service} does not run: start it first")
        if project.override in project.files or self.host.read(project.override) is not None:
            raise UsageError(
                f"{project.override} is left of an earlier trial: type  breakeven recover ; or, where it was "
                "kept, move its command into your own file, and remove it"
            )
        if await hash_now(self.host, project) != config_hash(container):
            raise UsageError(
                f"service {self.service} does not run as its files say now, so `up` would change more than "
                f"the command: type  {shlex.join(project.up(override=False))}  first"
            )
        if await self._docker.image_id(str(container.config["Image"])) != container.image_id:
            raise UsageError(
                f"image {container.config['Image']} is another one by now than service {self.service} runs: "
                f"type  {shlex.join(project.up(override=False))}  first"
            )

    def _inspected(self) -> tuple[Project, CommandLine]:
        if self._project is None or self._line is None:
            raise ServerError(f"service {self.service} was not looked at: call inspect first")
        return self._project, self._line


def override_text(service: str, entrypoint: tuple[str, ...], words: tuple[str, ...]) -> str:
    """A Compose file, in the JSON that YAML holds. A dollar sign is doubled, or Compose would expand it."""
    held = [word.replace("$", "$$") for word in words]
    settings: dict[str, Any] = {"command": held[len(entrypoint) :]}
    if words[: len(entrypoint)] != entrypoint:
        settings = {"entrypoint": held[:1], "command": held[1:]}
    return json.dumps({"services": {service: settings}}, indent=2) + "\n"


def _evidence(container: Container, project: Project) -> dict[str, str]:
    return {
        "container": container.name,
        "image": f"{container.config['Image']} ({container.inspected['Image']})",
        "command": shown_argv(container.words),
        "project": project.name,
        "files": ", ".join(project.files),
        "up": shlex.join(project.up(override=False)),
    }


def _warnings(container: Container) -> tuple[str, ...]:
    if container.written_bytes < NOTED_BYTES:
        return ()
    return (
        f"service {container.name} wrote {size(container.written_bytes)} outside its volumes, such as "
        "weights that were downloaded; Compose makes a new container each time, and that is lost: mount a "
        "volume where it is kept",
    )
