"""Pods of a workload's current template, and how their server is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from breakeven.servers.kubernetes.workload import PodContainer, Workload
from breakeven.servers.lifecycle import State
from breakeven.servers.moments import seconds_since

Json = Mapping[str, Any]

STUCK = ("CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")
STUCK_SUFFIX = "Error"
"""Reasons for which a container waits that time alone does not mend end in this, or are in STUCK."""


def newest(pods: Iterable[Json], container: PodContainer) -> Json | None:
    """The latest pod that runs the container as it is in the template now, and is not being deleted."""
    ours = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and _runs(pod, container)]
    return max(ours, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)


def container_status(pod: Json, name: str) -> Json:
    """Empty before the pod has one."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((status for status in statuses if status["name"] == name), {})


def has_started(pod: Json, name: str) -> bool:
    """Whether the container has a log."""
    state = container_status(pod, name).get("state") or {}
    return "running" in state or "terminated" in state


def state_of(workload: Workload, pod: Json | None, container: str, is_returning: bool = False) -> State:
    """How the server is; `starting` where nothing is wrong and it is not ready. `is_returning`: nothing is
    wrong with what the cluster tries again by itself."""
    if workload.replicas == 0:
        return State("stopped", "0 replicas")
    if pod is None:
        return State("starting", "no pod of the changed template yet")
    status = container_status(pod, container)
    failure = _failure(status)
    if failure is not None:
        return State("starting" if is_returning else "failed", failure)
    running = (status.get("state") or {}).get("running") or {}
    since_s = seconds_since(running.get("startedAt"))
    if status.get("ready") and workload.rolled_out():
        return State("running", "", since_s)
    return State("starting", _unscheduled(pod), since_s)


def _runs(pod: Json, container: PodContainer) -> bool:
    specs = (spec for spec in pod["spec"]["containers"] if spec["name"] == container.name)
    return any(
        all((spec.get(key) or []) == (container.spec.get(key) or []) for key in ("command", "args"))
        for spec in specs
    )


def _failure(status: Json) -> str | None:
    state = status.get("state") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    waiting = str((state.get("waiting") or {}).get("reason", ""))
    if ended is not None and not status.get("ready"):
        restarts = status.get("restartCount", 0)
        again = f"; started again {restarts} times" if restarts else ""
        return f"{ended.get('reason', 'ended')}, exit code {ended['exitCode']}{again}"
    if waiting in STUCK or waiting.endswith(STUCK_SUFFIX):
        return f"{waiting}: {state['waiting'].get('message', 'no message')}"
    return None


def _unscheduled(pod: Json) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next(
        (
            f"{condition.get('reason')}: {condition.get('message')}"
            for condition in conditions
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ),
        "",
    )
