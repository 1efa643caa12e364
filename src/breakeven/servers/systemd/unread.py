"""Files of a unit that systemd has not read yet, and would read together with ours.

NeedDaemonReload= tells of files that changed, but not of a first drop-in in a new folder, nor of a unit file
in a folder of higher precedence (systemd 252).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import PurePosixPath

from breakeven.servers.operations import Host
from breakeven.servers.systemd.unit_name import UnitName


async def unread(
    host: Host, name: UnitName, unit_path: Sequence[str], fragment: str, dropins: Sequence[str]
) -> tuple[str, ...]:
    """Paths, given what systemd has read. Raises ServerError where it cannot be looked."""
    fragments, folders = _fragments_before(name, unit_path, fragment), name.dropin_folders(unit_path)
    where = ("find", "-L", fragment, *fragments, *folders)
    done = await host.run((*where, "-maxdepth", "1", "-name", "*.*", "-printf", "%y %D:%i %p\n"))
    files = [line.split(" ", 2) for line in done.stdout.splitlines()]
    ours = {inode for _, inode, path in files if path == fragment}
    other_units = [path for _, inode, path in files if path in fragments and inode not in ours]
    return (*other_units, *_dropins(files, {PurePosixPath(path).name for path in dropins}))


def _dropins(files: Sequence[Sequence[str]], known: Container[str]) -> tuple[str, ...]:
    """Of one name the first counts; what is no file, such as a link to /dev/null, hides the rest."""
    found: dict[str, str] = {}
    for kind, _, path in files:
        file = PurePosixPath(path)
        if file.suffix == ".conf" and not file.name.startswith("."):
            found.setdefault(file.name, path if kind == "f" else "")
    return tuple(path for file, path in found.items() if path and file not in known)


def _fragments_before(name: UnitName, unit_path: Sequence[str], fragment: str) -> tuple[str, ...]:
    """Where a unit file would count more than the one that was read."""
    names = [name.full, name.template] if name.template else [name.full]
    places = [f"{folder}/{one}" for one in names for folder in unit_path]
    return tuple(places[: places.index(fragment)]) if fragment in places else ()
