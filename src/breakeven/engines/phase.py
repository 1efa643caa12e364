"""Phase: how far a server is with its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PhaseName = Literal["starting", "loading weights", "compiling", "capturing graphs", "warming up", "serving"]


@dataclass(frozen=True, slots=True)
class Phase:
    """As a line of the server's log tells."""

    name: PhaseName
    done: int | None = None
    total: int | None = None
    """Of the phase's units, such as shards or graph sizes; None where the line has none."""
