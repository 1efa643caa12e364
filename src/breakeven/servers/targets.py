"""Targets: what `--server` names, such as systemd:vllm.service or docker:vllm, as the lifecycle of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakeven.client.endpoint import Endpoint
from breakeven.errors import UsageError
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.operations import Host

FORMS = (
    "systemd:UNIT, systemd-user:UNIT, docker:CONTAINER, compose:FILE#SERVICE, "
    "kubernetes:NAMESPACE/deployment/NAME, kubernetes:NAMESPACE/statefulset/NAME, attached:URL, "
    "or process: with the command line behind --"
)
WORKLOADS = {
    "deployment": "deployment",
    "deployments": "deployment",
    "deploy": "deployment",
    "statefulset": "statefulset",
    "statefulsets": "statefulset",
    "sts": "statefulset",
}
"""As kubectl takes them, to one name for each."""
_CONTAINER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_SERVICE = re.compile(r"[a-zA-Z0-9_.][a-zA-Z0-9_.-]*")
_DNS = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What a target alone does not say."""

    command: Sequence[str] = ()
    """process: what to run. attached: the command line as far as it is known."""
    log_path: Path | None = None
    """process: where its output goes."""
    container: str | None = None
    """kubernetes: which container of the pod."""
    context: str | None = None
    """kubernetes: which cluster; None is kubectl's current one."""
    endpoint: Endpoint | None = None
    """attached: the URL with its credentials."""


def lifecycle_of(target: str, host: Host, options: TargetOptions | None = None) -> Lifecycle:
    """Touches nothing yet. Raises UsageError for a target of no known form, with those there are."""
    kind, colon, place = target.partition(":")
    make = _MAKERS.get(kind)
    if make is None or not colon:
        raise UsageError(f"{target!r} is no server: type  --server  and one of {FORMS}")
    return make(host, place, options or TargetOptions())


def full_name(target: str) -> str:
    """A target of a known form as `Found.target` has it, with what may be left out or be typed otherwise.
    Raises UsageError for a unit or a URL that cannot be one."""
    from breakeven.servers.systemd.unit_name import UnitName

    kind, _, place = target.partition(":")
    match kind:
        case "systemd" | "systemd-user":
            return f"{kind}:{UnitName.parse(place).full}"
        case "compose":
            file, _, service = place.rpartition("#")
            return f"{kind}:{Path(file).absolute()}#{service}"
        case "kubernetes":
            namespace, workload, name = [*place.split("/"), "", ""][:3]
            return f"{kind}:{namespace}/{WORKLOADS.get(workload, workload)}/{name}"
        case "attached":
            return f"{kind}:{Endpoint(place).base_url}"
    return target


def _systemd(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.systemd.lifecycle import SystemdLifecycle

    return SystemdLifecycle(host, place)


def _systemd_user(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.systemd.lifecycle import SystemdLifecycle

    return SystemdLifecycle(host, place, user=True)


def _docker(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.docker.lifecycle import DockerLifecycle

    _require(_CONTAINER.fullmatch(place), f"docker:{place}", "docker:CONTAINER, by its name in  docker ps")
    return DockerLifecycle(host, place)


def _compose(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.compose.lifecycle import ComposeLifecycle

    file, _, service = place.rpartition("#")
    named = file and _SERVICE.fullmatch(service)
    _require(named, f"compose:{place}", "compose:FILE#SERVICE, such as compose:compose.yaml#vllm")
    return ComposeLifecycle(host, file, service)


def _kubernetes(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.kubernetes.lifecycle import KubernetesLifecycle

    namespace, workload, name = [*place.split("/"), "", ""][:3]
    named = place.count("/") == 2 and _DNS.fullmatch(namespace) and _DNS.fullmatch(name)
    form = "kubernetes:NAMESPACE/deployment/NAME, such as kubernetes:default/deployment/vllm"
    _require(named and workload in WORKLOADS, f"kubernetes:{place}", form)
    resource = f"{WORKLOADS[workload]}/{name}"
    return KubernetesLifecycle(host, namespace, resource, options.container, options.context)


def _attached(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.attached.lifecycle import AttachedLifecycle

    return AttachedLifecycle(options.endpoint or Endpoint(place), tuple(options.command))


def _process(host: Host, place: str, options: TargetOptions) -> Lifecycle:
    from breakeven.servers.process import SUCH_AS, ProcessServer

    if place:
        raise UsageError(
            f"process:{place} cannot be: type  --server process:  and the command line behind --, {SUCH_AS}"
        )
    return ProcessServer(tuple(options.command), options.log_path or Path("server.log"))


def _require(ok: object, target: str, form: str) -> None:
    if not ok:
        raise UsageError(f"{target!r} names no server: type  --server {form}")


_MAKERS: Mapping[str, Callable[[Host, str, TargetOptions], Lifecycle]] = {
    "systemd": _systemd,
    "systemd-user": _systemd_user,
    "docker": _docker,
    "compose": _compose,
    "kubernetes": _kubernetes,
    "attached": _attached,
    "process": _process,
}
