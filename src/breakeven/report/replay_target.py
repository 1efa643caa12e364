"""Where a page may be written: known before the work starts, so that no result waits for a better path."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from breakeven.errors import StorageError, UsageError

PAGE = ".html"


def check_target(target: Path, inputs: Iterable[Path], example: str, option: str = "--html") -> None:
    """Raises UsageError unless `target` can take a page and is none of `inputs`, nor a file of theirs.

    It may be absent, a regular file, or a character device such as /dev/null; a link stands for its target.
    `example` is a page to type instead. `option` names the target: one of another kind is checked alike.
    """
    if why := _unfit(target) or _kept(target, inputs):
        raise UsageError(f"{option} {target}: {why}: type {option} {example}")


def _unfit(target: Path) -> str:
    """Why nothing can be written there; empty where it can."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        return _reason(error)
    real = target.resolve()
    if mode is None or stat.S_ISREG(mode):
        return _unfit_folder(real.parent)
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if not stat.S_ISCHR(mode) or not real.exists():
        return "it is no regular file"
    return "" if os.access(real, os.W_OK) else "no permission to write to it"


def _unfit_folder(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"cannot write in {folder} ({_reason(error)})"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _kept(target: Path, inputs: Iterable[Path]) -> str:
    """Why a file that is there must stay; pages in a run's folder are made to be written anew."""
    for path in inputs if target.is_file() else ():
        if path.exists() and target.samefile(path):
            return f"it is {path} itself"
        if path.is_dir() and target.suffix != PAGE and path.resolve() in target.resolve().parents:
            return f"it is a file of {path}"
    return ""


def unwritten(path: Path, error: StorageError) -> StorageError:
    """The error as one of --html: what went wrong with the page, and what to type."""
    cause = error.__cause__
    why = _reason(cause) if isinstance(cause, OSError) else str(error)
    return StorageError(f"cannot write the page {path}: {why}: name another file with --html")
