"""Workload: a Deployment or StatefulSet as `kubectl get -o json` gives it, as far as it matters here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.errors import UsageError
from breakeven.secrets import masked_environment

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodContainer:
    """One container of a pod template."""

    index: int
    """In the template's list."""
    spec: Json

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def image(self) -> str:
        """As the manifest names it."""
        return str(self.spec.get("image", ""))

    @property
    def image_may_move(self) -> bool:
        """Whether each start pulls the image anew by its tag, which may be another one by then. The cluster
        fills in a policy where the manifest has none."""
        return self.spec.get("imagePullPolicy") == "Always" and "@" not in self.image

    @property
    def field(self) -> str:
        """Which field the last word of the command line is in."""
        return "args" if self.spec.get("args") else "command"

    @property
    def words(self) -> tuple[str, ...]:
        """Command and arguments, as the manifest has them."""
        return (*(self.spec.get("command") or ()), *(self.spec.get("args") or ()))

    @property
    def environment(self) -> dict[str, str]:
        """Its variables; those which come from elsewhere, such as a secret, without a value."""
        given = {
            v["name"]: str(v.get("value", "")) for v in self.spec.get("env") or () if "valueFrom" not in v
        }
        taken = {v["name"]: "(set elsewhere)" for v in self.spec.get("env") or () if "valueFrom" in v}
        return {**masked_environment(given), **taken}

    def requests_gpus(self) -> bool:
        limits = (self.spec.get("resources") or {}).get("limits") or {}
        return any(name.endswith("/gpu") or ".com/mig-" in name for name in limits)


@dataclass(frozen=True, slots=True)
class Workload:
    """One Deployment or StatefulSet, as its cluster has it."""

    object: Json
    """All of it; secrets may be in it, so it is never shown or kept."""

    @property
    def kind(self) -> str:
        return str(self.object["kind"])

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        return self.object["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.object["metadata"].get("annotations") or {}

    @property
    def spec(self) -> Json:
        return dict(self.object["spec"])

    @property
    def status(self) -> Json:
        return self.object.get("status") or {}

    @property
    def replicas(self) -> int:
        replicas = self.spec.get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def containers(self) -> tuple[PodContainer, ...]:
        listed = self.spec["template"]["spec"]["containers"]
        return tuple(PodContainer(index, spec) for index, spec in enumerate(listed))

    @property
    def selector(self) -> str:
        """As `--selector` takes it; empty where it selects by nothing. Raises UsageError for an expression of
        a kind that is not known."""
        selector = self.spec.get("selector") or {}
        labels = [f"{name}={value}" for name, value in sorted((selector.get("matchLabels") or {}).items())]
        return ",".join([*labels, *map(_expression, selector.get("matchExpressions") or ())])

    def container(self, name: str) -> PodContainer | None:
        return next((container for container in self.containers if container.name == name), None)

    def owner(self) -> str | None:
        """What controls it, such as InferenceService/qwen; None where nothing does."""
        owners = self.object["metadata"].get("ownerReferences") or ()
        return next((f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller")), None)

    def rolled_out(self) -> bool:
        """Whether every replica is of the current template and ready, and none is left of an older one."""
        status = self.status
        seen = status.get("observedGeneration", 0) >= self.object["metadata"].get("generation", 0)
        there, updated, ready = (
            status.get(key) or 0 for key in ("replicas", "updatedReplicas", "readyReplicas")
        )
        return seen and there <= updated and min(updated, ready) >= self.replicas


def _expression(given: Json) -> str:
    """One of matchExpressions, as kubectl writes it."""
    key, values = given["key"], ",".join(given.get("values") or ())
    match given["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case "DoesNotExist":
            return f"!{key}"
    raise UsageError(
        f"the selector of its pods has an operator {given['operator']!r}, which is not known here: restart "
        "it yourself, with  --server attached:URL"
    )
