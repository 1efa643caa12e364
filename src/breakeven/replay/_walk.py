"""The compiled loop that steps through a record whose drafts are tabled."""

from __future__ import annotations

from typing import Any

from breakeven.drafters.compiler import kernel


@kernel
def walk(accepted: Any, positions: Any, first: int, at: Any, counts: Any) -> int:
    """Write the table position of each step into `at`, each request's number of steps into `counts`.

    accepted: Table.accepted, shape (positions,); positions: where each request begins in it, shape (n + 1,);
    first: output tokens that come before the first step; at: shape (positions,); counts: shape (n,).
    Returns the number of steps.
    """
    n = 0
    for r in range(len(counts)):
        before = n
        p = positions[r] + first
        end = positions[r + 1]
        while p < end:
            at[n] = p
            n += 1
            p += accepted[p] + 1
        counts[r] = n - before
    return n
