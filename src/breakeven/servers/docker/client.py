"""DockerClient: what is asked of a Docker daemon, all of it through the user's own `docker` command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.client.message import ReplyMessage
from breakeven.errors import ServerError
from breakeven.servers.operation_kinds import command_failed, run_checked
from breakeven.servers.operations import Host

DOCKER = "docker"
SLOW_TIMEOUT_S = 600.0
"""Of what waits for a container to stop, or for a disk."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DockerClient:
    """Which daemon, and with which rights, is the affair of `docker`: contexts and DOCKER_HOST hold."""

    host: Host

    async def find(self, name: str, size: bool = False) -> dict[str, Any] | None:
        """What `docker container inspect` says of a name or id; None where there is no such container.

        `size` adds SizeRw, the bytes that it wrote outside its volumes. Raises ServerError.
        """
        argv = (DOCKER, "container", "inspect", *(("--size",) if size else ()), name)
        done = await self.host.run(argv, timeout_s=SLOW_TIMEOUT_S)
        if done.returncode and "no such container" in done.stderr.lower():
            return None
        if done.returncode:
            raise command_failed(argv, done)
        found: list[dict[str, Any]] = _json(argv, done.stdout)
        return found[0]

    async def containers(self, *labels: str) -> tuple[str, ...]:
        """Ids of all containers, running or not, that have these labels, each NAME=VALUE."""
        filters = (word for label in labels for word in ("--filter", f"label={label}"))
        argv = (DOCKER, "ps", "--all", "--no-trunc", *filters, "--format", "{{.ID}}")
        return tuple((await run_checked(self.host, argv)).stdout.split())

    async def image_id(self, image: str) -> str | None:
        """What an image's name stands for now; None where there is no such image."""
        argv = (DOCKER, "image", "inspect", "--format", "{{.Id}}", image)
        done = await self.host.run(argv)
        return None if done.returncode else done.stdout.strip()

    async def api_version(self) -> str:
        """The version of the Engine API that `docker` and its daemon agreed on, such as 1.47."""
        argv = (DOCKER, "version", "--format", "{{.Client.APIVersion}}")
        return (await run_checked(self.host, argv)).stdout.strip()

    async def create(self, name: str, body: Json) -> None:
        """Make a container, not started, by the Engine API, which takes what `inspect` gives; the flags of
        `docker create` do not. `docker system dial-stdio` is docker's own way to the daemon, as over ssh.

        The body may hold secrets: it goes through stdin, and no message quotes it. Raises ServerError.
        """
        path = f"/v{await self.api_version()}/containers/create?name={name}"
        argv = (DOCKER, "system", "dial-stdio")
        done = await self.host.run(argv, _request(path, body), SLOW_TIMEOUT_S, hold_stdin=True)
        if done.returncode:
            raise command_failed(argv, done)
        reply = ReplyMessage()
        answer = reply.feed(done.stdout.encode())
        if reply.status != 201:
            raise ServerError(f"docker would not create {name} (HTTP {reply.status}): {_message(answer)}")


def _request(path: str, body: Json) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + data


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return "it gave no reason"


def _json(argv: tuple[str, ...], text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ServerError(f"{' '.join(argv)} answered with what is no JSON ({error})") from error
