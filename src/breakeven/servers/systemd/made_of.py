"""Environment files of a service, as the process that runs read them: the next start reads them anew."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from breakeven.errors import ServerError
from breakeven.servers.operations import Host
from breakeven.servers.systemd import age
from breakeven.servers.systemd.manager import Manager
from breakeven.servers.systemd.reading import UPTIME, is_pattern

CHANGED = "changed after it was started"
SHOWN = 12
"""Digits of a fingerprint that tell one file from another."""


async def files_read(manager: Manager, unit: str, paths: Iterable[str]) -> dict[str, str | None]:
    """A fingerprint of each, as there are secrets in them; CHANGED for one that is younger than the process,
    so that what it read is not known any more. None for one that cannot be read, and where the machine does
    not tell how old the process is. Raises ServerError."""
    paths, uptime = tuple(paths), manager.host.read(UPTIME)
    if uptime is None:
        return {_name(path): None for path in paths}
    properties = await manager.show(unit, (age.STARTED, "MainPID"))
    host = manager.host
    changed = await age.changed_since_start(host, properties, paths, uptime)
    return {_name(path): CHANGED if path in changed else _fingerprint(host, path) for path in paths}


def _fingerprint(host: Host, path: str) -> str | None:
    if is_pattern(path):
        return None
    try:
        data = host.read(path)
    except ServerError:
        return None
    return "none there" if data is None else hashlib.sha256(data).hexdigest()[:SHOWN]


def _name(path: str) -> str:
    return f"environment file {path}"
