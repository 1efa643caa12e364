"""FakeCluster: `kubectl` and a cluster of one namespace in memory, as far as a trial uses them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from breakeven.servers.fake.host import FakeHost
from breakeven.servers.operations import Completed

_SHORT = {"deployment": "deployments.apps", "statefulset": "statefulsets.apps"}


class FakeCluster:
    """One workload, which a patch changes, and whose pods are then replaced at once. `host` runs commands."""

    def __init__(
        self,
        workload: Mapping[str, Any],
        scalers: Iterable[Mapping[str, Any]] = (),
        context: str | None = "gpu-cluster",
    ) -> None:
        """`context`: None is kubectl in a pod."""
        self.workload: dict[str, Any] = copy.deepcopy(dict(workload))
        self.scalers = list(scalers)
        self.context = context
        self.may_patch = True
        self.image_ids: dict[str, str] = {}
        """Of images whose tag has moved, by the image."""
        self.log = ""
        self.pods: list[dict[str, Any]] = []
        self.host = FakeHost(self)
        self._made = 0
        self._roll_out()

    @property
    def resource(self) -> str:
        return f"{self.workload['kind'].lower()}/{self.workload['metadata']['name']}"

    def spec(self) -> dict[str, Any]:
        """What the workload is to be, without what the cluster says of it."""
        return copy.deepcopy(dict(self.workload["spec"]))

    def __call__(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        if argv[0] != "kubectl":
            raise AssertionError(f"the fake has no command {argv}")
        if argv[1:] == ("config", "current-context"):
            return self._current_context()
        words = list(argv[1:])
        if words[0] == "--context":
            if words[1] != self.context:
                return Completed(1, "", f'error: context "{words[1]}" does not exist\n')
            words = words[2:]
        if words[:2] != ["--namespace", self.workload["metadata"]["namespace"]]:
            return Completed(1, "", 'Error from server (NotFound): namespaces "other" not found\n')
        return self._namespaced(words[2:], stdin)

    def _namespaced(self, words: list[str], stdin: bytes | None) -> Completed:
        match words:
            case ["get", "pods", "--selector", _, "--output", "json"]:
                return _listed(self.pods)
            case ["get", "horizontalpodautoscalers", "--output", "json"]:
                return _listed(self.scalers)
            case ["get", resource, "--output", "json"]:
                return self._found(resource) or _said(json.dumps(self.workload))
            case ["auth", "can-i", "patch", _]:
                return Completed(0, "yes\n", "") if self.may_patch else Completed(1, "no\n", "")
            case ["patch", resource, "--type", "json", "--patch-file", "/dev/stdin"]:
                return self._found(resource) or self._patch(json.loads(stdin or b"[]"))
            case ["rollout", "status", _, "--watch=false"]:
                return _said("Waiting for rollout to finish: 0 of 1 updated replicas are available...")
            case ["logs", "--follow", _, "--container", _]:
                return _said(self.log)
        raise AssertionError(f"the fake has no command {words}")

    def _current_context(self) -> Completed:
        if self.context is None:
            return Completed(1, "", "error: current-context is not set\n")
        return _said(self.context)

    def _found(self, resource: str) -> Completed | None:
        """None where there is such a thing."""
        if resource == self.resource:
            return None
        kind, _, name = resource.partition("/")
        return Completed(
            1, "", f'Error from server (NotFound): {_SHORT.get(kind, kind)} "{name}" not found\n'
        )

    def _patch(self, changes: list[dict[str, Any]]) -> Completed:
        changed = copy.deepcopy(self.workload)
        for change in changes:
            *above, last = change["path"].removeprefix("/").split("/")
            held: Any = changed
            for part in above:
                held = held[int(part)] if isinstance(held, list) else held[part]
            if change["op"] == "test" and held.get(last) != change["value"]:
                said = (
                    "The request is invalid: the server rejected our request due to an error in our request"
                )
                return Completed(1, "", f"{said}\n")
            if change["op"] == "replace":
                held[last] = change["value"]
        if changed != self.workload:
            self.workload = changed
            self.workload["metadata"]["generation"] += 1
            self._roll_out()
        return _said(f"{self.resource} patched")

    def _roll_out(self) -> None:
        """New pods instead of the old ones, all ready."""
        replicas = self.workload["spec"].get("replicas", 1)
        self.pods = [self._pod() for _ in range(replicas)]
        counts = dict.fromkeys(
            ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas
        )
        generation = self.workload["metadata"]["generation"]
        self.workload["status"] = {"observedGeneration": generation, **counts}

    def _pod(self) -> dict[str, Any]:
        self._made += 1
        moment = f"2026-01-01T00:00:{self._made:02}Z"
        template = copy.deepcopy(self.workload["spec"]["template"])
        statuses = [
            {
                "name": container["name"],
                "imageID": self.image_ids.get(container["image"], f"{container['image']}@sha256:0a"),
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": moment}},
                "lastState": {},
            }
            for container in template["spec"]["containers"]
        ]
        name = f"{self.workload['metadata']['name']}-{self._made}"
        return {
            "metadata": {"name": name, "creationTimestamp": moment, **template["metadata"]},
            "spec": template["spec"],
            "status": {"phase": "Running", "conditions": [], "containerStatuses": statuses},
        }


def _listed(items: list[Any]) -> Completed:
    return _said(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _said(text: str) -> Completed:
    return Completed(0, f"{text}\n" if text else "", "")
