"""numba's compiler where it is installed, else plain Python: kernels are written to give the same in both."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = os.environ.get("BREAKEVEN_COMPILED", "1") != "0" and find_spec("numba") is not None
"""False without numba, or with BREAKEVEN_COMPILED=0 in the environment."""


def kernel(function: F) -> F:
    """Compile a loop over arrays; it gives up the interpreter lock, and its machine code is kept on disk."""
    if not COMPILED:
        return function
    import numba

    compiled: F = numba.njit(cache=True, nogil=True)(function)  # type: ignore[assignment]
    return compiled
