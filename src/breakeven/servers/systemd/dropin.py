"""Drop-ins: a file of our own beside a unit that sets its ExecStart= anew and nothing else.

For a trial it lies under /run: the unit's own files stay as they are, and a reboot or power cut at any point
takes the drop-in away by itself, so that the service starts as it was before, also when nobody runs
`breakeven recover`. Drop-ins count by file name, not by folder, so that one under /run can come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal

from breakeven.errors import UsageError

Place = Literal["until reboot", "for good"]

TRIAL_NAME = "zz-breakeven.conf"
KEPT_NAME = "zz-breakeven-kept.conf"
"""Sorts before TRIAL_NAME, so that a later trial of a kept setting counts."""
_HEAD = "# Written by breakeven, which takes it away again: breakeven recover\n"
_KEPT_HEAD = "# Written by breakeven: speculation that a trial found faster. Delete to go back.\n"


def text(exec_start: str, place: Place) -> bytes:
    """Resets ExecStart= before it sets it: a second one would be refused."""
    head = _KEPT_HEAD if place == "for good" else _HEAD
    return f"{head}[Service]\nExecStart=\nExecStart={exec_start}\n".encode()


def name(existing: Iterable[str], place: Place) -> str:
    """A file name that sorts after all drop-ins that there are, as paths."""
    wanted = KEPT_NAME if place == "for good" else TRIAL_NAME
    others = {PurePosixPath(path).name for path in existing} - {KEPT_NAME, TRIAL_NAME}
    last = max(others, key=str.encode, default="")
    return wanted if last.encode() < wanted.encode() else f"{last}-{wanted}"


def is_trial(path: str) -> bool:
    return PurePosixPath(path).name.endswith(TRIAL_NAME)


def folder(unit_path: Sequence[str], user: bool, place: Place) -> str:
    """Of the folders with units, the administrator's or the user's own. Raises UsageError."""
    ending = "/systemd/user" if user else "/systemd/system"
    for path in unit_path:
        if path.endswith(ending) and path.startswith("/run/") == (place == "until reboot"):
            return path
    raise UsageError(f"systemd has no folder for units that last {place}: it looks in {' '.join(unit_path)}")
