"""Targets: servers as users name them, `systemd:vllm.service`, and what looks after each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.client.endpoint import Endpoint
from breakeven.errors import UsageError
from breakeven.servers.host import LocalHost, SudoHost
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.operations import Host

FORMS = {
    "systemd": "systemd:UNIT",
    "systemd-user": "systemd-user:UNIT",
    "docker": "docker:CONTAINER",
    "compose": "compose:FILE#SERVICE",
    "kubernetes": "kubernetes:NAMESPACE/deployment/NAME",
    "attached": "attached:URL",
}


def host_of(options: Mapping[str, Any]) -> Host:
    """`sudo`: through the user's own."""
    return SudoHost() if options.get("sudo") else LocalHost()


def lifecycle_of(target: str, host: Host, endpoint: Endpoint, options: Mapping[str, Any]) -> Lifecycle:
    """What looks after a target; `options` are `container` and `context` of Kubernetes, where given.

    Raises UsageError for what is no target, or has no server without breakeven.
    """
    kind, _, place = target.partition(":")
    if kind not in FORMS or not place:
        raise UsageError(f"{target!r} is no target: type one of {', '.join(FORMS.values())}")
    match kind:
        case "systemd" | "systemd-user":
            from breakeven.servers.systemd.lifecycle import SystemdLifecycle

            return SystemdLifecycle(host, place, user=kind == "systemd-user")
        case "docker":
            from breakeven.servers.docker.lifecycle import DockerLifecycle

            return DockerLifecycle(host, place)
        case "compose":
            from breakeven.servers.compose.lifecycle import ComposeLifecycle

            file, service = _divided(target, place.rpartition("#"))
            return ComposeLifecycle(host, file, service)
        case "kubernetes":
            from breakeven.servers.kubernetes.lifecycle import KubernetesLifecycle

            namespace, resource = _divided(target, place.partition("/"))
            container, context = options.get("container"), options.get("context")
            return KubernetesLifecycle(host, namespace, resource, container, context)
    from breakeven.servers.attached.lifecycle import AttachedLifecycle

    return AttachedLifecycle(endpoint)


def _divided(target: str, parts: tuple[str, str, str]) -> tuple[str, str]:
    first, _, last = parts
    if not first or not last:
        raise UsageError(f"{target!r} lacks something: type  {FORMS[target.partition(':')[0]]}")
    return first, last
