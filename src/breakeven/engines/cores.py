"""Cores that a process here may really use: what the affinity mask, SMT and a container's quota leave."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

CPU_FOLDER = Path("/sys/devices/system/cpu")
CGROUP_FOLDER = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Physical cores of the affinity mask, cut to the container's CPU quota; 1 or more.

    Two hardware threads of one core count once: matrix kernels saturate a core's vector units alone.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    physical = _physical(allowed)
    quota = _quota()
    return max(1, physical if quota is None else min(physical, math.floor(quota)))


def _physical(cpus: Iterable[int]) -> int:
    return len({_siblings(cpu) for cpu in cpus})


def _siblings(cpu: int) -> str:
    """The kernel's list of hardware threads on this CPU's core, or the CPU alone where it does not say."""
    try:
        return (CPU_FOLDER / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def _quota() -> float | None:
    """CPUs that the control group allows (version 2, then version 1); None where it sets no limit."""
    try:
        quota, period = (CGROUP_FOLDER / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (CGROUP_FOLDER / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (CGROUP_FOLDER / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota in ("max", "-1"):
        return None
    return int(quota) / int(period)
