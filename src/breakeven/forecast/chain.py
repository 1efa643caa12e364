"""Chain: acceptance by position from the one figure that is published of a drafter, its acceptance length."""

from __future__ import annotations

from breakeven.errors import UsageError

_HALVINGS = 60
"""Of the interval that the rate lies in: beyond them a double holds no more."""


def chain_acceptance(length: float, k: int) -> tuple[float, ...]:
    """The share of steps that accept each of k drafted tokens, for a mean of `length` tokens a step.

    Each token is taken as accepted with one probability α, whatever came before: 1 + α + … + α^k = length
    (Leviathan et al. 2023). Real heads do somewhat better at the first position and worse at the last. Raises
    UsageError for a length below 1 or above k + 1, which no chain of k tokens has.
    """
    if not 1 <= length <= k + 1:
        raise UsageError(
            f"an acceptance length of {length:g}: a step that drafts {k} gives 1 to {k + 1} tokens, the "
            "target's own among them; type  --ks  up to the window that it was measured with"
        )
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(middle**i for i in range(k + 1)) < length else (low, middle)
    return tuple(high**i for i in range(1, k + 1))
