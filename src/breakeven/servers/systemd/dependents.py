"""Units that go down with a service, and are started again once it is put back."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.servers.operation_kinds import RunCommand
from breakeven.servers.systemd.manager import Manager

NAMES = ("RequiredBy", "BoundBy", "ConsistsOf")
"""The other sides of Requires=, BindsTo= and PartOf=: a stop goes on to these, and from them to theirs; those
bound to it are stopped when it fails too. Nothing starts them again (systemd.unit(5))."""
ACTIVE = ("active", "activating", "reloading", "refreshing")
_CANNOT_BE = ("not found", "not loaded", "is masked", "may be requested by dependency only")
"""What was changed about such a unit meanwhile is not undone, and does not keep the server itself down."""


def named(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Those that a unit's properties name, active or not."""
    return tuple(sorted({name for key in NAMES for name in properties.get(key, "").split()}))


async def active(manager: Manager, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Those that run now, and those of theirs. Raises ServerError."""
    found: dict[str, bool] = {}
    waiting = list(named(properties))
    while waiting:
        name = waiting.pop(0)
        if name not in found and name != properties.get("Id"):
            own = await manager.show(name, ("Id", "ActiveState", *NAMES))
            found[name] = own.get("ActiveState") in ACTIVE
            waiting += named(own)
    return tuple(sorted(name for name, runs in found.items() if runs))


def started_again(manager: Manager, names: tuple[str, ...]) -> tuple[RunCommand, ...]:
    """Comes first in a change, so that its undo comes last; nothing where nothing depends on the service."""
    if not names:
        return ()
    start = (*manager.systemctl, "start", "--no-block", "--", *names)
    return (RunCommand(None, start, nothing_to_undo=_CANNOT_BE),)
