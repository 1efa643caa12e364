"""Where a systemd finds a service's files, and in which order (systemd.unit(5)), on files in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

SYSTEM_PATH = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
USER_PATH = (
    "/home/ada/.config/systemd/user",
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
    names = [unit, *_template(unit)]
    fragment = next(
        (f"{folder}/{name}" for name in names for folder in unit_path if f"{folder}/{name}" in files), ""
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
    for folder in _dropin_folders(unit, unit_path):
        for path in files:
            file = PurePosixPath(path)
            if str(file.parent) == folder and file.suffix == ".conf" and not file.name.startswith("."):
                found.setdefault(file.name, path)
    return tuple(found[name] for name in sorted(found, key=str.encode))


def _dropin_folders(unit: str, unit_path: Sequence[str]) -> Iterator[str]:
    names = [unit, *_template(unit)]
    names += [shorter for name in names for shorter in _shorter(name)]
    for folder in unit_path:
        for name in names:
            yield f"{folder}/{name}.d"
    for folder in unit_path:
        yield f"{folder}/service.d"


def _template(unit: str) -> list[str]:
    prefix, at, _ = unit.partition("@")
    return [f"{prefix}@.service"] if at else []


def _shorter(unit: str) -> Iterator[str]:
    """`a-b-c.service` also takes the drop-ins of `a-b-.service` and `a-.service`."""
    prefix, at, rest = unit.removesuffix(".service").partition("@")
    pieces = prefix.split("-")
    for count in range(len(pieces) - 1, 0, -1):
        yield "-".join(pieces[:count]) + "-" + at + rest + ".service"
