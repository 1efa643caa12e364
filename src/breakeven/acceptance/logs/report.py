"""What one line of a log tells, in every engine's format alike: counts, or the state of the work.

These are plain tuples, for a log may have a million such lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

NOTHING: Mapping[str, float] = MappingProxyType({})


class LogReport(NamedTuple):
    """Counts of one period. None is unknown."""

    engine: str
    format: str
    """In words, such as `vLLM 0.9`."""
    at: str | None
    """The time as the line gives it."""
    drafted: int | None = None
    accepted: int | None = None
    drafts: tuple[int, int] | None = None
    """The fewest and the most that fit what the line rounds."""
    steps: int | None = None
    emitted: int | None = None
    """Tokens of those steps that are in the replies."""
    shares: tuple[float, ...] = ()
    """By position, the share of drafts with at least so many tokens accepted, to 3 decimals."""
    per_position: tuple[int, ...] | None = None
    """The same as counts, where only one number fits each."""
    reported: Mapping[str, float] = NOTHING
    """Ratios as printed, by the keys of DEFINITIONS."""
    weight: int = 1
    """How many requests the line averages over, for formats that give ratios only."""


class LogState(NamedTuple):
    """One rank at one time. None is unknown."""

    running: int
    waiting: int
    kv_usage: float | None
    """Share of the KV cache in use."""
    output_s: float | None
    """Tokens put out per second."""
    hit_rate: float | None = None
    """Of the prefix cache."""
