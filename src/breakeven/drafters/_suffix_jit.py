"""Compilers for loops that allocate nothing: numba then counts no references to arrays, most of the time
else."""

from __future__ import annotations

from typing import Any

from breakeven.drafters._jit import COMPILED, F

OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
"""_nrt is numba's runtime, which owns arrays. Without it no function can make one; slices are none of their
own."""


def kernel(function: F) -> F:
    """As _jit.kernel, for a function that makes no array."""
    if not COMPILED:
        return function
    import numba

    compiled: F = numba.njit(cache=True, **OPTIONS)(function)
    return compiled


def inlined(function: F) -> F:
    """For a small function that is called often: it becomes a part of each kernel that calls it."""
    if not COMPILED:
        return function
    import numba

    compiled: F = numba.njit(forceinline=True, **OPTIONS)(function)
    return compiled
