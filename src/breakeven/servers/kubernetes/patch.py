"""PatchCommand: the arguments or the command of one container of a workload, changed and put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.servers.kubernetes.client import KubernetesClient
from breakeven.servers.kubernetes.workload import PodContainer, Workload
from breakeven.servers.operations import Host
from breakeven.servers.wordedit import WordEdit, digest


@dataclass(frozen=True, slots=True)
class PatchCommand:
    """Changes nothing else, and that only if it still is as it was found: a patch tests before it replaces.

    Undone, the words are as before. What the journal keeps are the words that differ, and no others.
    """

    op: ClassVar[str] = "patch_command"

    context: str | None
    namespace: str
    resource: str
    """Such as deployment/vllm."""
    container: str
    field: str
    """`args` or `command`."""
    edit: WordEdit
    after: tuple[str, ...] = ()
    """What the field becomes."""

    def describe(self) -> str:
        where = f"{self.resource} in namespace {self.namespace}"
        return f"patch the {self.field} of container {self.container} of {where}"

    def describe_undo(self) -> str:
        return f"{self.describe()}, back to what it was"

    async def do(self, host: Host) -> None:
        container = await self._container(host)
        if digest(self._words(container)) != self.edit.digest_before:
            raise ServerError(f"{self.resource} was changed by somebody else just now: try again")
        await self._replace(host, container, self.after)

    async def undo(self, host: Host) -> None:
        container = await self._container(host)
        now = digest(self._words(container))
        if now == self.edit.digest_before:
            return
        if now != self.edit.digest_after:
            raise UsageError(
                f"the {self.field} of {self.resource} was changed by somebody else since: put it right by "
                "hand, then type  breakeven recover --forget"
            )
        await self._replace(host, container, self.edit.undone(self._words(container)))

    def _client(self, host: Host) -> KubernetesClient:
        return KubernetesClient(host, self.namespace, self.context)

    def _words(self, container: PodContainer) -> tuple[str, ...]:
        return tuple(container.spec.get(self.field) or ())

    async def _container(self, host: Host) -> PodContainer:
        found = await self._client(host).get(self.resource)
        container = Workload(found).container(self.container) if found else None
        if container is None:
            raise UsageError(f"{self.resource} with container {self.container} is gone: nothing was changed")
        return container

    async def _replace(self, host: Host, container: PodContainer, words: Sequence[str]) -> None:
        place = f"/spec/template/spec/containers/{container.index}"
        before = list(self._words(container))
        changes: list[dict[str, Any]] = [
            {"op": "test", "path": f"{place}/name", "value": self.container},
            {"op": "test", "path": f"{place}/{self.field}", "value": before},
            {"op": "replace", "path": f"{place}/{self.field}", "value": list(words)},
        ]
        await self._client(host).patch(self.resource, changes)

    def to_json(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "context": self.context,
            "namespace": self.namespace,
            "resource": self.resource,
            "container": self.container,
            "field": self.field,
            "edit": self.edit.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PatchCommand:
        """Fit to be undone only."""
        names = ("context", "namespace", "resource", "container", "field")
        context, namespace, resource, container, field = (value[name] for name in names)
        return cls(context, namespace, resource, container, field, WordEdit.from_json(value["edit"]))
