"""Compilers for loops that make no array: numba then counts no references, which took most of their time."""

from __future__ import annotations

from typing import Any

from breakeven.drafters._jit import COMPILED, F

OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
"""_nrt is numba's runtime, which owns the memory of arrays; slices need none."""


def kernel(function: F) -> F:
    """As _jit.kernel, but the function cannot make an array."""
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
