"""Survival: how likely the next draft token is accepted, counted over all requests that a guard has seen.

By the tokens of the match; _kernels.py says why, and has the loops that count.
Its size does not grow: old counts fade. It can be kept across restarts.
"""

from __future__ import annotations

import numpy as np
import orjson
from numpy.typing import NDArray

from breakeven.guard._kernels import MOST_MEMORY, ROWS

FORMAT = "breakeven-guard"
VERSION = 1


class Survival:
    """Begins without knowledge: then the prior alone tells."""

    def __init__(self) -> None:
        self.counts: NDArray[np.float64] = np.zeros((ROWS, 2))
        """Trials and hits by length of the match; shape (rows, 2)."""

    @property
    def is_taught(self) -> bool:
        """Whether anything was counted."""
        return bool(self.counts.any())

    def to_json(self) -> bytes:
        """What `from_json` reads."""
        kept = {"format": FORMAT, "version": VERSION, "counts": self.counts.tolist()}
        return orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_json(cls, data: bytes) -> Survival:
        """What `to_json` made. Raises ValueError that says what it is instead."""
        try:
            kept = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"no JSON (line {error.lineno})") from error
        if not isinstance(kept, dict) or (kept.get("format"), kept.get("version")) != (FORMAT, VERSION):
            raise ValueError("no learned acceptance of this version of the guard")
        made = cls()
        made.counts[:] = _checked(kept.get("counts"), made.counts.shape)
        return made


def _checked(values: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Counts that can have been counted."""
    try:
        counts = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"learned acceptance that is damaged ({error})") from error
    if counts.shape != shape:
        raise ValueError(f"learned acceptance of shape {counts.shape}, not {shape}")
    trials, hits = counts.T
    if not ((hits >= 0) & (hits <= trials) & (trials <= MOST_MEMORY)).all():
        raise ValueError("learned acceptance with more hits than trials, or counts that cannot be")
    return counts
