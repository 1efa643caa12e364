"""numba's compiler where it is installed, else plain Python: kernels are written to give the same in both."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = os.environ.get("BREAKEVEN_COMPILED", "1") != "0" and find_spec("numba") is not None
"""False without numba, or with BREAKEVEN_COMPILED=0 in the environment."""


LEAN: dict[str, Any] = {"nogil": True, "_nrt": False}
"""For loops that make no array: without numba's runtime no references are counted, most of their time."""


def kernel(function: F) -> F:
    """Compile a loop over arrays; it gives up the interpreter lock, and its machine code is kept on disk."""
    if not COMPILED:
        return function
    import numba

    compiled: F = numba.njit(cache=True, nogil=True)(function)  # type: ignore[assignment]
    return compiled


def lean_kernel(function: F) -> F:
    """As `kernel`, for a function that makes no array; slices are none."""
    if not COMPILED:
        return function
    import numba

    compiled: F = numba.njit(cache=True, **LEAN)(function)
    return compiled


def inlined(function: F) -> F:
    """For a small function that is called often: it becomes a part of each lean kernel that calls it."""
    if not COMPILED:
        return function
    import numba

    compiled: F = numba.njit(forceinline=True, **LEAN)(function)
    return compiled
