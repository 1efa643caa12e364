"""Who measured: the client's machine and software, as far as they can change a figure."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

CLOCK: Final = "perf_counter"
"""Every `_ns` stamp of a trace is read from time.perf_counter_ns."""


@dataclass(frozen=True, slots=True)
class ClientProvenance:
    """The measuring side. None is unknown."""

    python: str
    platform: str
    cpu: str | None
    cores: int
    """Cores that this process may use."""
    event_loop: str
    """`asyncio` or `uvloop`."""
    git_commit: str | None
    """Of the working folder, `-dirty` if it has changes."""
    clock: str
    clock_resolution_s: float
    load_average_start: tuple[float, ...] | None
    """Over 1, 5 and 15 minutes."""
    load_average_end: tuple[float, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a newer version, kept as they are."""


def collect_client(event_loop: str) -> ClientProvenance:
    """What can be said about this machine now."""
    return ClientProvenance(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        cpu=_cpu(),
        cores=_cores(),
        event_loop=event_loop,
        git_commit=_git_commit(),
        clock=time.get_clock_info(CLOCK).implementation,
        clock_resolution_s=time.get_clock_info(CLOCK).resolution,
        load_average_start=load_average(),
    )


def load_average() -> tuple[float, ...] | None:
    """Over 1, 5 and 15 minutes; None where the system does not say."""
    try:
        return os.getloadavg()
    except OSError:
        return None


def without_credentials(url: str) -> str:
    """The URL without user, password, query and fragment: each of them may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or None


def _git_commit() -> str | None:
    return _output("git", "describe", "--always", "--dirty", "--abbrev=40", "--match", "")


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
