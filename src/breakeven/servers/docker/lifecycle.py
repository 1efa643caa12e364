"""DockerLifecycle: a container of `docker run`. Docker cannot change the command of one, so the user's is
stopped and put aside under another name, and a copy of it with the changed command takes its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.secrets import shown_argv
from breakeven.servers.argv_diff import argv_diff
from breakeven.servers.commandline import CommandLine, read_command_line
from breakeven.servers.docker.aside import PutAside
from breakeven.servers.docker.client import DOCKER, SLOW_TIMEOUT_S, DockerClient
from breakeven.servers.docker.container import NOTED_BYTES, Container
from breakeven.servers.docker.copy import CopyContainer
from breakeven.servers.docker.stop import StopContainer
from breakeven.servers.lifecycle import IMAGE, Found, Kind, Lifecycle, State
from breakeven.servers.operation_kinds import RunCommand, run_checked
from breakeven.servers.operations import Host, Operation
from breakeven.units import size

ASIDE = "{}-breakeven-baseline"
"""Name of the user's container while ours has its name."""
SEVERAL_NETWORKS = (1, 44)
"""The Engine API creates a container in several networks from this version on (Docker 25)."""


class DockerLifecycle(Lifecycle):
    """One container, by its name."""

    kind: ClassVar[Kind] = "docker"

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        self._docker = DockerClient(host)
        self._line: CommandLine | None = None
        self._found_id: str | None = None

    @property
    def look_s(self) -> float:
        return max(5.0, self.host.look_s)

    async def inspect(self) -> Found:
        found = await self._docker.find(self.name, size=True)
        if found is None:
            raise UsageError(f"there is no container {self.name}: type  docker ps  and name one of those")
        container = Container(found)
        _refuse_managed(container)
        await self._refuse_unfit(container)
        self._line, self._found_id = read_command_line(container.words), container.id
        return Found(
            target=f"docker:{container.name}",
            argv=self._line.argv,
            environment=container.environment(),
            evidence=_evidence(container),
            warnings=_warnings(container),
        )

    async def check_rights(self) -> None:
        try:
            await self._docker.ping()
        except ServerError as error:
            raise UsageError(f"a copy of {self.name} cannot be made here: {error}") from error

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """Of a container that starts whenever Docker does, even after it was stopped (`always`), the copy
        does not: after a reboot the service is back as it was."""
        return self._with_copy(found, argv, found.evidence["restart"] != "always")

    def keep(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        """The copy starts when the user's container did, which does not any more and stays stopped."""
        operations = self._with_copy(found, argv, True)
        if found.evidence["restart"] != "always":
            return operations
        identity = found.evidence["id"]
        always = (DOCKER, "update", "--restart", "always", identity)
        return (*operations, RunCommand((DOCKER, "update", "--restart", "no", identity), always))

    def _with_copy(self, found: Found, argv: tuple[str, ...], starts_at_boot: bool) -> tuple[Operation, ...]:
        identity, name = found.evidence["id"], found.evidence["name"]
        return (
            StopContainer(identity),
            PutAside(identity, name, ASIDE.format(name)),
            CopyContainer(name, identity, self._inspected().with_argv(argv), starts_at_boot),
        )

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return argv_diff(self._inspected().argv, argv, found.target)

    async def restart(self) -> None:
        """A container runs as it is configured for all its life: one that runs already is left alone."""
        await run_checked(self.host, (DOCKER, "start", self.name), timeout_s=SLOW_TIMEOUT_S)

    async def state(self) -> State:
        container = await self._container()
        return container.state(is_new=self._found_id not in (None, container.id))

    async def returning_state(self) -> State:
        return (await self._container()).returning()

    async def made_of(self) -> dict[str, str | None]:
        return {IMAGE: (await self._container()).image_id}

    async def logs(self) -> AsyncIterator[str]:
        started = str((await self._container()).inspected["State"]["StartedAt"])
        argv = (DOCKER, "logs", "--follow", "--since", started, self.name)
        async with aclosing(self.host.lines(argv)) as lines:
            async for line in lines:
                yield line

    async def _container(self) -> Container:
        found = await self._docker.find(self.name)
        if found is None:
            raise ServerError(f"container {self.name} is gone: type  docker ps --all")
        return Container(found)

    def _inspected(self) -> CommandLine:
        if self._line is None:
            raise ServerError(f"{self.name} was not looked at: call inspect first")
        return self._line

    async def _refuse_unfit(self, container: Container) -> None:
        if not container.running:
            raise UsageError(f"{container.name} does not run: type  docker start {container.name}  first")
        if container.host_config.get("AutoRemove"):
            raise UsageError(
                f"{container.name} was started with --rm, so stopping it would remove it: start it without "
                "--rm, or, if a systemd unit starts it, type  --server systemd:UNIT"
            )
        aside = ASIDE.format(container.name)
        if await self._docker.find(aside) is not None:
            raise UsageError(
                f"{aside} is left of an earlier trial: type  breakeven recover ; or, where its winner was "
                f"kept, docker rm {aside}"
            )
        if len(container.networks) > 1 and await self._api() < SEVERAL_NETWORKS:
            raise UsageError(
                f"{container.name} is in several networks, and this Docker cannot copy such a container: "
                "upgrade it to version 25 or above"
            )

    async def _api(self) -> tuple[int, ...]:
        return tuple(int(part) for part in (await self._docker.api_version()).split("."))


def _refuse_managed(container: Container) -> None:
    labels = container.labels
    managed = "is managed by {}, which would undo the change: type  --server {}"
    if "com.docker.compose.project" in labels:
        files = labels.get("com.docker.compose.project.config_files", "FILE").split(",")
        target = f"compose:{files[0]}#{labels.get('com.docker.compose.service', 'SERVICE')}"
        raise UsageError(f"{container.name} {managed.format('Docker Compose', target)}")
    if "io.kubernetes.pod.name" in labels:
        target = f"kubernetes:{labels.get('io.kubernetes.pod.namespace', 'NAMESPACE')}/deployment/NAME"
        raise UsageError(f"{container.name} {managed.format('Kubernetes', target)}")
    if "com.docker.swarm.service.name" in labels:
        raise UsageError(
            f"{container.name} is managed by Docker Swarm, which would undo the change: restart it yourself, "
            "with  --server attached:URL"
        )


def _evidence(container: Container) -> dict[str, str]:
    return {
        "id": container.id,
        "name": container.name,
        "image": f"{container.config['Image']} ({container.inspected['Image']})",
        "command": shown_argv(container.words),
        "restart": container.restart_policy,
    }


def _warnings(container: Container) -> tuple[str, ...]:
    said = []
    if container.written_bytes >= NOTED_BYTES:
        said.append(
            f"{container.name} wrote {size(container.written_bytes)} outside its volumes, such as weights "
            "that were downloaded: the copy starts without them; mount a volume where they are kept"
        )
    bindings = container.host_config.get("PortBindings") or {}
    if any(not end.get("HostPort") for ends in bindings.values() for end in ends or ()):
        said.append(f"Docker chooses a port of {container.name} at each start: publish a fixed one")
    return tuple(said)
