"""Which prompts are kept apart for evaluation."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

POINT_BYTES = 8


def held_out(openings: Iterable[str], share: float, seed: int) -> frozenset[str]:
    """Of conversations, known by how they open, about `share`, chosen by a hash of each with the seed.

    One that is added or removed later moves no other to the other side. Of two or more conversations at least
    one is on each side, unless the share is 0.
    """
    points = {opening: _point(opening, seed) for opening in openings}
    if share <= 0 or len(points) < 2:
        return frozenset()
    ranked = sorted(points, key=lambda opening: (points[opening], opening))
    chosen = [opening for opening in ranked if points[opening] < share]
    return frozenset((chosen or ranked[:1])[: len(ranked) - 1])


def _point(opening: str, seed: int) -> float:
    """From 0 up to 1, evenly spread."""
    hashed = blake2b(f"{seed}:{opening}".encode(), digest_size=POINT_BYTES).digest()
    return int.from_bytes(hashed, "big") / (1 << (8 * POINT_BYTES))
