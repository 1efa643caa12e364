"""Where a systemd finds a service's files, and in which order (systemd.unit(5)), on files in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from breakeven.servers.systemd.unit_name import UnitName

SYSTEM_PATH = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
USER_PATH = (
    "/home/llm/.config/systemd/user",
    "/etc/systemd/user",
    "/run/user/1000/systemd/user",
    "/usr/lib/systemd/user",
)
"""Highest precedence first."""

LoadState = Literal["loaded", "not-found", "masked"]


@dataclass(frozen=True, slots=True)
class UnitFiles:
    """A unit as it was when it was last read."""

    load_state: LoadState
    fragment: str
    """Path of its own file; empty where there is none."""
    dropins: tuple[str, ...]
    """Paths, in the order in which they count."""
    contents: Mapping[str, bytes]
    """Of all of these, in that order."""


def find(unit: str, files: Mapping[str, bytes], unit_path: Sequence[str]) -> UnitFiles:
    """An empty file stands for a link to /dev/null, which masks a unit, as an empty file does too."""
    name = UnitName(unit)
    names = [unit, name.template] if name.template else [unit]
    fragment = next(
        (f"{folder}/{one}" for one in names for folder in unit_path if f"{folder}/{one}" in files), ""
    )
    if not fragment:
        return UnitFiles("not-found", "", (), {})
    if not files[fragment].strip():
        return UnitFiles("masked", fragment, (), {})
    dropins = _dropins(unit, files, unit_path)
    return UnitFiles("loaded", fragment, dropins, {path: files[path] for path in (fragment, *dropins)})


def _dropins(unit: str, files: Mapping[str, bytes], unit_path: Sequence[str]) -> tuple[str, ...]:
    """By file name; of those with the same name, the first folder's counts."""
    found: dict[str, str] = {}
    for folder in UnitName(unit).dropin_folders(unit_path):
        for path in files:
            file = PurePosixPath(path)
            if str(file.parent) == folder and file.suffix == ".conf" and not file.name.startswith("."):
                found.setdefault(file.name, path)
    return tuple(found[name] for name in sorted(found, key=str.encode))
