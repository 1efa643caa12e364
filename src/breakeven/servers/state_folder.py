"""Where breakeven keeps what must survive it: journals of trials, and how long servers took to start."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from urllib.parse import quote

import platformdirs

from breakeven.errors import StorageError
from breakeven.servers.host import sync_folder

LONGEST_NAME = 200
"""Characters of a file's name, of the 255 that file systems take."""


def state_folder() -> Path:
    """Of this user: on Linux `~/.local/state/breakeven`, or below XDG_STATE_HOME."""
    return Path(platformdirs.user_state_dir("breakeven", appauthor=False))


def name_of(target: str) -> str:
    """A file's name for a target on this machine: homes are shared among machines, their services are not."""
    name = quote(f"{target}@{platform.node()}", safe=":@")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def make_folder(folder: Path) -> None:
    """For this user's eyes only, and on disk. Raises StorageError."""
    try:
        missing = [above for above in (folder, *folder.parents) if not above.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
            sync_folder(each.parent)
    except OSError as error:
        raise StorageError(f"the folder {folder} cannot be made: {error.strerror}") from error
