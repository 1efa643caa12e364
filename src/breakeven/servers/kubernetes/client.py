"""KubernetesClient: what is asked of a cluster, all of it through the user's own `kubectl`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakeven.errors import ServerError
from breakeven.servers.operation_kinds import command_failed, run_checked
from breakeven.servers.operations import Completed, Host

KUBECTL = "kubectl"
CONTEXT_UNSET = "current-context is not set"


@dataclass(frozen=True, slots=True)
class KubernetesClient:
    """One namespace of one cluster. The context is named in every command: it may not change in a trial."""

    host: Host
    namespace: str
    context: str | None = None
    """None in a pod, where kubectl has no context."""

    def argv(self, *words: str) -> tuple[str, ...]:
        context = ("--context", self.context) if self.context else ()
        return (KUBECTL, *context, "--namespace", self.namespace, *words)

    async def run(self, *words: str) -> Completed:
        return await self.host.run(self.argv(*words))

    async def get(self, resource: str) -> dict[str, Any] | None:
        """A thing such as deployment/vllm; None where there is none. Raises ServerError."""
        done = await self.run("get", resource, "--output", "json")
        if done.returncode and "(NotFound)" in done.stderr:
            return None
        if done.returncode:
            raise _failed(self.argv("get", resource), done)
        return dict(_object(done.stdout))

    async def items(self, resources: str, *words: str) -> tuple[dict[str, Any], ...]:
        """All of one kind, such as pods. Raises ServerError."""
        done = await run_checked(self.host, self.argv("get", resources, *words, "--output", "json"))
        return tuple(_object(done.stdout)["items"])

    async def patch(self, resource: str, changes: Sequence[dict[str, Any]]) -> None:
        """By JSON patch, all of it or nothing, through stdin, as secrets may be in it. Raises ServerError."""
        argv = self.argv("patch", resource, "--type", "json", "--patch-file", "/dev/stdin")
        await run_checked(self.host, argv, json.dumps(list(changes)).encode())

    async def may_patch(self, resource: str) -> bool:
        return (await self.run("auth", "can-i", "patch", resource)).returncode == 0


async def current_context(host: Host) -> str | None:
    """Raises ServerError where kubectl does not run."""
    argv = (KUBECTL, "config", "current-context")
    done = await host.run(argv)
    if done.returncode and CONTEXT_UNSET not in done.stderr:
        raise _failed(argv, done)
    return None if done.returncode else done.stdout.strip()


def _failed(argv: tuple[str, ...], done: Completed) -> ServerError:
    """kubectl logs every try before it says what is wrong, in its last line."""
    said = done.stderr.strip().splitlines()[-1:]
    return command_failed(argv, replace(done, stderr="".join(said)))


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ServerError(f"kubectl answered with what is no JSON ({error})") from error
