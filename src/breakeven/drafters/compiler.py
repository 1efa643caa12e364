"""numba's compiler where it is installed, else plain Python: kernels are written to give the same in both."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from breakeven.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = os.environ.get("BREAKEVEN_COMPILED", "1") != "0" and find_spec("numba") is not None
"""False without numba, or with BREAKEVEN_COMPILED=0 in the environment."""
PLAIN: dict[str, Any] = {"nogil": True}
"""A kernel gives up the interpreter lock."""
LEAN: dict[str, Any] = {"nogil": True, "_nrt": False}
"""For loops that make no array: without numba's runtime no references are counted, most of their time."""
KERNELS = re.compile(rb"^@(kernel|lean_kernel|inlined)\b", re.MULTILINE)
"""Where a module has one."""


def compiles_first() -> bool:
    """Whether the loops are still to be compiled: nothing of these sources is kept yet."""
    folder = _cache_folder(os.environ.get("NUMBA_CACHE_DIR", "")) if COMPILED else None
    return COMPILED and (folder is None or next(folder.rglob("*.nbi"), None) is None)


def kernel(function: F) -> F:
    """Compile a loop over arrays; its machine code is kept on disk."""
    return _compiled(function, PLAIN) if COMPILED else function


def lean_kernel(function: F) -> F:
    """As `kernel`, for a function that makes no array; slices are none."""
    return _compiled(function, LEAN) if COMPILED else function


def inlined(function: F) -> F:
    """For a small function that is called often: it becomes a part of each lean kernel that calls it."""
    if not COMPILED:
        return function
    compiled: F = _numba().njit(forceinline=True, **LEAN)(function)
    return compiled


def _numba() -> Any:
    try:
        import numba
    except Exception as error:
        raise UsageError(
            f"numba is installed but does not load ({error}): mend it, or type  export BREAKEVEN_COMPILED=0"
        ) from error
    return numba


def _compiled(function: F, options: dict[str, Any]) -> F:
    numba = _numba()
    settings = numba.config
    given = settings.CACHE_DIR
    folder = _cache_folder(given)
    settings.CACHE_DIR = str(folder)
    try:
        compiled: F = numba.njit(cache=folder is not None, **options)(function)
    finally:
        settings.CACHE_DIR = given
    return compiled


@cache
def _cache_folder(given: str) -> Path | None:
    """One for each state of all kernels' sources: numba looks at a kernel's own file, not at its callees'.

    Inside NUMBA_CACHE_DIR, if that is given; None where nothing can be written.
    """
    digest = blake2b(digest_size=8)
    for source in kernel_sources():
        digest.update(source.read_bytes())
    folder = Path(given or platformdirs.user_cache_path("breakeven") / "kernels") / digest.hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def kernel_sources() -> list[Path]:
    """The modules of this package that have kernels; and, for constants of theirs, all beside this one."""
    here = Path(__file__).parent
    return [
        source
        for source in sorted(here.parent.rglob("*.py"))
        if source.parent == here or KERNELS.search(source.read_bytes())
    ]
