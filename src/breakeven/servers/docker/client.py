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

    async def ping(self) -> None:
        """Raises ServerError where the Engine API cannot be reached as `create` reaches it."""
        status, _ = await self._call("GET", "/_ping")
        if status != 200:
            raise ServerError(f"the Docker daemon answered with HTTP {status}: see its log")

    async def create(self, name: str, body: Json) -> None:
        """Make a container, not started, by the Engine API, which takes what `inspect` gives; the flags of
        `docker create` do not. The body may hold secrets: no message quotes it. Raises ServerError.
        """
        status, answer = await self._call(
            "POST", f"/containers/create?name={name}", json.dumps(body).encode()
        )
        if status != 201:
            raise ServerError(f"docker would not create {name} (HTTP {status}): {_message(answer)}")

    async def _call(self, method: str, path: str, body: bytes = b"") -> tuple[int | None, bytes]:
        """Status and body of the answer. `docker system dial-stdio` is docker's own way to its daemon, as it
        goes over ssh; stdin stays open, as its end would tell the daemon that nobody waits any more."""
        request = _request(method, f"/v{await self.api_version()}{path}", body)
        argv = (DOCKER, "system", "dial-stdio")
        done = await self.host.run(argv, request, SLOW_TIMEOUT_S, hold_stdin=True)
        if done.returncode:
            raise command_failed(argv, done)
        reply = ReplyMessage()
        answer = reply.feed(done.stdout.encode())
        return reply.status, answer


def _request(method: str, path: str, body: bytes) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


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
