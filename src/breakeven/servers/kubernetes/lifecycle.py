"""KubernetesLifecycle: a Deployment or StatefulSet, of which the arguments of one container are patched; the
cluster then restarts it by itself, as its own strategy says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.secrets import shown_argv
from breakeven.servers.argv_diff import argv_diff
from breakeven.servers.commandline import CommandLine, read_command_line, runs_engine
from breakeven.servers.kubernetes.client import KubernetesClient, current_context
from breakeven.servers.kubernetes.images import entrypoint_of
from breakeven.servers.kubernetes.patch import PatchCommand
from breakeven.servers.kubernetes.pods import Json, container_status, has_started, newest, state_of
from breakeven.servers.kubernetes.warnings import refuse, warnings
from breakeven.servers.kubernetes.workload import PodContainer, Workload
from breakeven.servers.lifecycle import IMAGE, Found, Kind, Lifecycle, State
from breakeven.servers.operations import Host, Operation
from breakeven.servers.wordedit import WordEdit

LOOK_S = 5.0
"""Between two looks for a pod that is to come."""


class KubernetesLifecycle(Lifecycle):
    """One container of one workload, such as deployment/vllm."""

    kind: ClassVar[Kind] = "kubernetes"

    def __init__(
        self,
        host: Host,
        namespace: str,
        resource: str,
        container: str | None = None,
        context: str | None = None,
    ) -> None:
        """`container`: None takes the only one, or the one that runs an engine that is known.
        `context`: None takes kubectl's current one, when first asked."""
        self.host = host
        self.namespace = namespace
        self.resource = resource
        self._container_name = container
        self._context = context
        self._line: CommandLine | None = None

    @property
    def look_s(self) -> float:
        """A look is two or three calls of kubectl."""
        return max(15.0, self.host.look_s)

    async def inspect(self) -> Found:
        client = await self._client()
        workload = await self._workload(client)
        refuse(workload)
        container = self._chosen(workload)
        self._line = read_command_line(_words(container))
        return Found(
            target=f"kubernetes:{self.namespace}/{self.resource}",
            argv=self._line.argv,
            environment=container.environment,
            evidence=self._evidence(client, container),
            warnings=warnings(workload, container, await _scalers(client)),
        )

    async def check_rights(self) -> None:
        client = await self._client()
        if not await client.may_patch(self.resource):
            raise UsageError(
                f"you may not patch {self.resource} in namespace {self.namespace}: ask for the verb `patch` "
                f"on {self.resource.partition('/')[0]}s"
            )

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        field, before, after = self._field(found, argv)
        edit = WordEdit.between(before, after)
        context = found.evidence["context"] or None
        return (
            PatchCommand(
                context, self.namespace, self.resource, found.evidence["container"], field, edit, after
            ),
        )

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return argv_diff(self._inspected().argv, argv, found.target)

    async def restart(self) -> None:
        """Nothing is left to do: the cluster restarts what is patched. `kubectl rollout restart` would change
        the template once more, and start everything twice."""

    async def state(self) -> State:
        return await self._state(is_returning=False)

    async def returning_state(self) -> State:
        return await self._state(is_returning=True)

    async def made_of(self) -> dict[str, str | None]:
        """Its image, by the id that the node gives it, as a digest."""
        client = await self._client()
        workload = await self._workload(client)
        container = self._chosen(workload)
        pod = newest(await _pods(client, workload), container)
        identity = container_status(pod, container.name).get("imageID") if pod else None
        named = container.image if "@" in container.image else None
        return {IMAGE: identity or named}

    async def _state(self, is_returning: bool) -> State:
        client = await self._client()
        workload = await self._workload(client)
        container = self._chosen(workload)
        pod = newest(await _pods(client, workload), container)
        state = state_of(workload, pod, container.name, is_returning)
        if state.condition != "starting" or state.detail:
            return state
        said = await client.run("rollout", "status", self.resource, "--watch=false")
        return replace(state, detail=said.stdout.strip())

    async def logs(self) -> AsyncIterator[str]:
        client = await self._client()
        name, container = await self._started_pod(client)
        argv = client.argv("logs", "--follow", name, "--container", container)
        async with aclosing(self.host.lines(argv)) as lines:
            async for line in lines:
                yield line

    async def _started_pod(self, client: KubernetesClient) -> tuple[str, str]:
        while True:
            workload = await self._workload(client)
            container = self._chosen(workload)
            pod = newest(await _pods(client, workload), container)
            if pod is not None and has_started(pod, container.name):
                return str(pod["metadata"]["name"]), container.name
            await asyncio.sleep(LOOK_S)

    async def _client(self) -> KubernetesClient:
        if self._context is None:
            self._context = await current_context(self.host) or ""
        return KubernetesClient(self.host, self.namespace, self._context or None)

    async def _workload(self, client: KubernetesClient) -> Workload:
        found = await client.get(self.resource)
        if found is None:
            raise UsageError(
                f"there is no {self.resource} in namespace {self.namespace}: type  kubectl get deployments,"
                "statefulsets --all-namespaces"
            )
        return Workload(found)

    def _chosen(self, workload: Workload) -> PodContainer:
        """Raises UsageError where it is not clear which."""
        containers = workload.containers
        names = ", ".join(container.name for container in containers)
        if self._container_name is not None:
            named = workload.container(self._container_name)
            if named is None:
                raise UsageError(
                    f"no container {self._container_name} in {self.resource}: type one of {names}"
                )
            return named
        if len(containers) == 1:
            return containers[0]
        engines = [container for container in containers if _runs_engine(container)]
        if len(engines) != 1:
            raise UsageError(
                f"which container of {self.resource} is the server? type  --container  and one of {names}"
            )
        return engines[0]

    def _inspected(self) -> CommandLine:
        if self._line is None:
            raise ServerError(f"{self.resource} was not looked at: call inspect first")
        return self._line

    def _evidence(self, client: KubernetesClient, container: PodContainer) -> dict[str, str]:
        return {
            "context": client.context or "",
            "container": container.name,
            "image": container.image,
            "command": shown_argv(container.words),
            "command_words": str(len(container.spec.get("command") or entrypoint_of(container.image))),
            "field": container.field,
        }

    def _field(self, found: Found, argv: tuple[str, ...]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Which field changes, and its words before and after."""
        line = self._inspected()
        before, after = line.words, line.with_argv(argv)
        if found.evidence["field"] == "command":
            return "command", before, after
        fixed = int(found.evidence["command_words"])
        if before[:fixed] != after[:fixed]:
            raise UsageError(
                f"the flags to be changed are in `command` of container {found.evidence['container']}: move "
                "them to its `args`"
            )
        return "args", before[fixed:], after[fixed:]


def _words(container: PodContainer) -> tuple[str, ...]:
    """The command line, with the image's own beginning where the manifest has none."""
    if container.spec.get("command"):
        return container.words
    image = container.image
    entrypoint = entrypoint_of(image)
    if not entrypoint or not container.words:
        raise UsageError(
            f"the command of container {container.name} is in its image {image}: write it into the "
            "manifest, as `command`"
        )
    return (*entrypoint, *container.words)


def _runs_engine(container: PodContainer) -> bool:
    try:
        return runs_engine(read_command_line(_words(container)).argv)
    except UsageError:
        return False


async def _pods(client: KubernetesClient, workload: Workload) -> tuple[Json, ...]:
    return await client.items("pods", "--selector", workload.selector)


async def _scalers(client: KubernetesClient) -> tuple[Json, ...]:
    try:
        return await client.items("horizontalpodautoscalers")
    except ServerError:
        return ()
