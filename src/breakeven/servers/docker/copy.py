"""CopyContainer: a container like the user's but for its command, made beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.servers.docker.client import DOCKER, SLOW_TIMEOUT_S, DockerClient
from breakeven.servers.docker.container import CANDIDATE_OF, SHORT_ID, Container
from breakeven.servers.operation_kinds import run_checked
from breakeven.servers.operations import Host


@dataclass(frozen=True, slots=True)
class CopyContainer:
    """Makes NAME, not started, from container `source`; undone, NAME is gone, whatever it was doing.

    The settings are read when it is done and never kept: there are secrets among them.
    """

    op: ClassVar[str] = "copy_container"

    name: str
    source: str
    """Id of the container that is copied."""
    words: tuple[str, ...] = ()
    """What the copy runs."""
    starts_at_boot: bool = True
    """As the container that is copied does; else Docker starts the copy only when it is told to."""

    def describe(self) -> str:
        return f"create container {self.name} like {self.source[:SHORT_ID]}, with the changed command"

    def describe_undo(self) -> str:
        return f"remove container {self.name}, which is the copy"

    async def do(self, host: Host) -> None:
        docker = DockerClient(host)
        source = await docker.find(self.source)
        if source is None:
            raise ServerError(f"container {self.source[:SHORT_ID]} is gone: there is nothing to copy")
        original = Container(source)
        image = str(original.config["Image"])
        if await docker.image_id(image) != source["Image"]:
            image = str(source["Image"])
        body = creation(original, self.words, image)
        if not self.starts_at_boot:
            body["HostConfig"]["RestartPolicy"] = {"Name": "no", "MaximumRetryCount": 0}
        await docker.create(self.name, body)

    async def undo(self, host: Host) -> None:
        found = await DockerClient(host).find(self.name)
        if found is None or found["Id"] == self.source:
            return
        container = Container(found)
        if container.labels.get(CANDIDATE_OF) != self.source:
            raise UsageError(
                f"container {self.name} is neither the one that was there nor breakeven's: rename it, then "
                "type  breakeven recover"
            )
        await run_checked(host, (DOCKER, "rm", "--force", container.id), timeout_s=SLOW_TIMEOUT_S)

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "name": self.name, "source": self.source}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CopyContainer:
        """Fit to be undone only: the command is not kept, as secrets may be in it."""
        return cls(value["name"], value["source"])


def creation(original: Container, words: Sequence[str], image: str) -> dict[str, Any]:
    """The body of POST /containers/create: the settings as inspected, with what Docker itself filled in taken
    out where it would not do for a second container."""
    body = dict(original.config)
    body["Image"] = image
    body["Entrypoint"], body["Cmd"] = _divided(original.entrypoint, tuple(words))
    body["Labels"] = {**original.labels, CANDIDATE_OF: original.id}
    if _hostname_is_dockers(original):
        body.pop("Hostname", None)
        body.pop("Domainname", None)
    body["HostConfig"] = _host_config(original)
    if original.networks:
        ends = {name: _endpoint(original, end) for name, end in original.networks.items()}
        body["NetworkingConfig"] = {"EndpointsConfig": ends}
    return body


def _divided(entrypoint: tuple[str, ...], words: tuple[str, ...]) -> tuple[list[str] | None, list[str]]:
    """Entrypoint and command: as they were divided before, as far as the words still allow it."""
    if words[: len(entrypoint)] == entrypoint:
        return list(entrypoint) or None, list(words[len(entrypoint) :])
    return list(words[:1]), list(words[1:])


def _hostname_is_dockers(original: Container) -> bool:
    shared = original.host_config.get("UTSMode") == "host"
    joined = str(original.host_config.get("NetworkMode")).startswith("container:")
    return shared or joined or original.config.get("Hostname") == original.id[:SHORT_ID]


def _host_config(original: Container) -> dict[str, Any]:
    """With volumes that have no name of their own mounted again, and links as they are asked for."""
    settings = dict(original.host_config)
    mounts = list(settings.get("Mounts") or ())
    given = {str(mount["Target"]) for mount in mounts} | {
        _target(bind) for bind in settings.get("Binds") or ()
    }
    for mount in original.inspected.get("Mounts") or ():
        if (
            mount["Type"] == "volume"
            and mount["Destination"] not in given
            and not settings.get("VolumesFrom")
        ):
            volume = {"Type": "volume", "Source": mount["Name"], "Target": mount["Destination"]}
            mounts.append({**volume, "ReadOnly": not mount["RW"]})
    if mounts:
        settings["Mounts"] = mounts
    if settings.get("Links"):
        settings["Links"] = [_link(link) for link in settings["Links"]]
    return settings


def _target(bind: str) -> str:
    """Of SOURCE:TARGET[:OPTIONS], or of TARGET alone."""
    parts = bind.split(":")
    return parts[1] if len(parts) > 1 else parts[0]


def _link(link: str) -> str:
    """`/db:/vllm/store`, as inspected, is db:store."""
    other, _, own = link.partition(":")
    return f"{other.removeprefix('/')}:{own.rpartition('/')[2]}"


def _endpoint(original: Container, end: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked of a network, without what it gave; the short id as an alias is Docker's own."""
    aliases = [alias for alias in end.get("Aliases") or () if alias != original.id[:SHORT_ID]]
    asked = {key: end[key] for key in ("IPAMConfig", "Links", "DriverOpts") if end.get(key)}
    return {**asked, "Aliases": aliases}
