"""What could go wrong with a trial in a cluster, and what cannot be tried at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from breakeven.errors import UsageError
from breakeven.servers.kubernetes.workload import PodContainer, Workload

GITOPS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations by which these know what is theirs."""
DEFAULT_PERIOD_S = 10
DEFAULT_FAILURES = 3
"""Of a probe, as Kubernetes has them."""


def refuse(workload: Workload) -> None:
    """Raises UsageError for one whose command is not its own, or that would not be restarted."""
    where = f"{workload.kind} {workload.name}"
    owner = workload.owner()
    if owner is not None:
        raise UsageError(
            f"{where} belongs to {owner}, which would undo the change: restart it yourself, with  --server "
            "attached:URL"
        )
    if not workload.selector:
        raise UsageError(
            f"{where} selects its pods by no label, so that they cannot be told from others: give it a "
            "selector, or restart it yourself, with  --server attached:URL"
        )
    if workload.replicas == 0:
        raise UsageError(f"{where} has 0 replicas: scale it up first")
    if workload.spec.get("paused"):
        raise UsageError(
            f"{where} is paused: type  kubectl rollout resume {workload.kind.lower()} {workload.name}"
        )
    update = workload.spec.get("updateStrategy") or {}
    if update.get("type") == "OnDelete" or (update.get("rollingUpdate") or {}).get("partition"):
        raise UsageError(
            f"{where} does not restart all of its pods when it is changed (updateStrategy): set "
            "RollingUpdate without a partition first"
        )
    if not workload.rolled_out():
        raise UsageError(f"{where} is in the middle of a rollout, or not ready: wait for it first")


def warnings(
    workload: Workload, container: PodContainer, scalers: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Each a sentence; `scalers` are the HorizontalPodAutoscalers of the namespace."""
    return (
        *_gitops(workload),
        *_scaled(workload, scalers),
        *_replicas(workload),
        *_surge(workload, container),
        *_probe(container),
        *_moving(container),
    )


def _gitops(workload: Workload) -> Iterator[str]:
    keys = {**workload.labels, **workload.annotations}
    tool = next((tool for key, tool in GITOPS.items() if key in keys), None)
    if tool is not None:
        yield (
            f"{tool} manages {workload.name} and may put the change back in the middle of the trial: "
            "suspend its sync of it first"
        )


def _scaled(workload: Workload, scalers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) == (workload.kind, workload.name):
            yield (
                f"HorizontalPodAutoscaler {scaler['metadata']['name']} may change the number of replicas "
                "while it is measured: set its minReplicas and maxReplicas to the same number first"
            )


def _replicas(workload: Workload) -> Iterator[str]:
    if workload.replicas > 1:
        yield (
            f"{workload.name} has {workload.replicas} replicas: both sides answer while a rollout goes on, "
            "and one URL may reach different pods in one side of the trial; try it on one replica"
        )


def _surge(workload: Workload, container: PodContainer) -> Iterator[str]:
    strategy = workload.spec.get("strategy") or {}
    if workload.kind != "Deployment" or strategy.get("type") == "Recreate" or not container.requests_gpus():
        return
    if (strategy.get("rollingUpdate") or {}).get("maxSurge") in (0, "0%"):
        return
    yield (
        f"{workload.name} starts the new pod before it stops the old one (RollingUpdate), which takes a "
        "spare GPU: without one the rollout hangs, and the old pod goes on serving; set the strategy to "
        "Recreate first"
    )


def _probe(container: PodContainer) -> Iterator[str]:
    probe = container.spec.get("startupProbe") or container.spec.get("livenessProbe")
    if probe is None:
        return
    period = probe.get("periodSeconds") or DEFAULT_PERIOD_S
    failures = probe.get("failureThreshold") or DEFAULT_FAILURES
    allowed = (probe.get("initialDelaySeconds") or 0) + period * failures
    yield (
        f"a probe restarts container {container.name} where it does not answer within about {allowed} s of "
        "its start: a start with speculation can take longer than one without"
    )


def _moving(container: PodContainer) -> Iterator[str]:
    if container.image_may_move:
        yield (
            f"each start of container {container.name} pulls {container.image} anew (imagePullPolicy: "
            "Always), which may be another image by then, in the trial and after it: name it by its digest, "
            "as in IMAGE@sha256:…, to be sure; the verdict says so where the two sides ran different ones"
        )
