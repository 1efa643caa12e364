"""One command at a time in a stage's folder, of all that see it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from breakeven.eagle.recipe import Recipe
from breakeven.errors import UsageError


@contextmanager
def at_work(recipe: Recipe, stage: str, *reads: str) -> Iterator[None]:
    """Keeps others out of a stage's folder, and out of making those anew that it `reads` meanwhile.

    The locks lie beside the folders that links lead to, since --fresh removes these, and stay: two files of
    one name could be locked by two processes. Where none can be written, nothing else can, and nobody is kept
    out. Raises UsageError where somebody else is at work, or for a link to nowhere.
    """
    with ExitStack() as held:
        for name, how in ((stage, fcntl.LOCK_EX), *((one, fcntl.LOCK_SH) for one in reads)):
            held.enter_context(_held(recipe.stage(name), how))
        yield


@contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    for one in (folder.parent, folder):
        _refuse_dangling(one)
    real = folder.resolve()
    descriptor = _opened(real.with_name(f".{real.name}.lock"))
    if descriptor is None:
        yield
        return
    try:
        _lock(descriptor, how, folder)
        yield
    finally:
        os.close(descriptor)


def _refuse_dangling(folder: Path) -> None:
    if folder.is_symlink() and not folder.exists():
        raise UsageError(
            f"{folder} is a link to {folder.readlink()}, which is not there: mount its disk, or make that "
            "folder"
        )


def _opened(path: Path) -> int | None:
    """For writing, as locks over NFS want it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _lock(descriptor: int, how: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another breakeven is at work in {folder}, or reads what is in it: wait until it has ended, or "
            "stop it by Ctrl-C"
        ) from None
    except OSError:  # a file system without locks
        return
