"""What a device can do: data-sheet peaks and measured AllReduce times, each value with its source."""

from __future__ import annotations

import difflib
import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from breakeven.errors import UsageError

NOT_VERIFIED = "not verified"
"""How the source of such a value begins."""
_LINK = "link"

Curve = tuple[tuple[int, float], ...]
"""Bytes and microseconds, ascending."""


@dataclass(frozen=True, slots=True)
class Link:
    """What joins devices of one server."""

    kind: str
    gb_per_s: float | None
    """Of one device, in one direction, at most."""
    all_reduce_us: Mapping[int, Curve] = field(default_factory=dict)
    """Measured, by the number of devices."""

    def all_reduce_s(self, n_bytes: float, devices: int) -> float | None:
        """Seconds of one AllReduce of a message of `n_bytes` among `devices`.

        Linear between measured points, the smallest message's time below them, and on along the last two
        above. None where nothing was measured for that many devices.
        """
        curve = self.all_reduce_us.get(devices)
        if curve is None:
            return None
        above = min(max(bisect_left(curve, n_bytes, key=lambda point: point[0]), 1), len(curve) - 1)
        (x0, y0), (x1, y1) = curve[above - 1], curve[above]
        return (y0 + (y1 - y0) * (max(n_bytes, curve[0][0]) - x0) / (x1 - x0)) * 1e-6


@dataclass(frozen=True, slots=True)
class Hardware:
    """One GPU, Apple system on a chip, or CPU socket with its memory. Peaks are dense, not sparse."""

    name: str
    memory_gib: float | None
    bandwidth_gb_per_s: float
    bf16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    link: Link | None
    sources: Mapping[str, str]
    """Where each value comes from, by the name of its field."""
    note: str = ""

    def unverified(self) -> tuple[str, ...]:
        """The fields whose value no source confirms."""
        return tuple(name for name, source in self.sources.items() if source.startswith(NOT_VERIFIED))


def hardware_names() -> tuple[str, ...]:
    """The names that `hardware` knows, in the order of the file."""
    return tuple(_file()["devices"])


def hardware(name: str) -> Hardware:
    """A device by name. Raises UsageError, which lists the names, for one that there is not."""
    devices = _file()["devices"]
    if name not in devices:
        near = difflib.get_close_matches(name, devices, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"no hardware preset {name!r}: {hint}There are {', '.join(devices)}")
    return _hardware(name, devices[name], _file()["sources"])


def _hardware(name: str, value: Mapping[str, Any], sources: Mapping[str, str]) -> Hardware:
    return Hardware(
        name=name,
        memory_gib=value.get("memory_gib"),
        bandwidth_gb_per_s=value["bandwidth_gb_per_s"],
        bf16_tflops=value.get("bf16_tflops"),
        fp8_tflops=value.get("fp8_tflops"),
        fp4_tflops=value.get("fp4_tflops"),
        link=_link(value.get(_LINK)),
        sources={key: sources.get(source, source) for key, source in value["sources"].items()},
        note=value.get("note", ""),
    )


def _link(value: Mapping[str, Any] | None) -> Link | None:
    if value is None:
        return None
    curves = value.get("all_reduce_us", {})
    measured = {int(n): tuple((int(x), float(y)) for x, y in curve) for n, curve in curves.items()}
    return Link(value["kind"], value.get("gb_per_s"), measured)


@cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files(__package__) / "data" / "hardware.json").read_text("utf-8"))
    return found
