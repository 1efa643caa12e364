"""Load: what a server counts of its work beside speculation, and what happened between two readings."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Load:
    """Counts since the server started, or between two readings; gauges as they stood at the later one. Summed
    over engines and ranks (the fullest cache counts). None is unknown."""

    requests: int | None = None
    """Finished, however they ended."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    preemptions: int | None = None
    prefix_queries: int | None = None
    """Tokens looked up in the prefix cache, …"""
    prefix_hits: int | None = None
    """… and found there."""
    running: float | None = None
    """Requests in the batch."""
    waiting: float | None = None
    kv_usage: float | None = None
    """Share of the KV cache in use, 0 to 1."""
    token_s: tuple[float, float] | None = None
    """Seconds, and how many inter-token gaps they are of: one per step and request, as vLLM counts them under
    speculation."""

    @property
    def prefix_hit_rate(self) -> float | None:
        """Tokens found in the prefix cache / tokens looked up there; None where more were found than that."""
        if self.prefix_hits is None or not self.prefix_queries or self.prefix_hits > self.prefix_queries:
            return None
        return self.prefix_hits / self.prefix_queries

    def __add__(self, later: Load) -> Load:
        """Of two stretches of time, one after the other."""
        counts = {name: None if a is None or b is None else a + b for name, a, b in _pairs(self, later)}
        gaps = None
        if self.token_s is not None and later.token_s is not None:
            gaps = (self.token_s[0] + later.token_s[0], self.token_s[1] + later.token_s[1])
        return replace(later, **counts, token_s=gaps)


COUNTS = ("requests", "prompt_tokens", "output_tokens", "preemptions", "prefix_queries", "prefix_hits")
"""The fields that only rise while a server runs, beside `token_s`."""


def between(before: Load, after: Load) -> Load:
    """What happened from one reading to the next. A count that fell, or that either lacks, is unknown."""
    counts = {
        name: None if a is None or b is None or b < a else b - a for name, a, b in _pairs(before, after)
    }
    return replace(after, **counts, token_s=_gaps(before.token_s, after.token_s))


def fell(before: Load, after: Load) -> bool:
    """Whether any count is lower than it was."""
    return any(a is not None and b is not None and b < a for _, a, b in _pairs(before, after))


def _pairs(first: Load, second: Load) -> list[tuple[str, int | None, int | None]]:
    return [(name, getattr(first, name), getattr(second, name)) for name in COUNTS]


def _gaps(
    before: tuple[float, float] | None, after: tuple[float, float] | None
) -> tuple[float, float] | None:
    if before is None or after is None:
        return None
    seconds, gaps = after[0] - before[0], after[1] - before[1]
    return (seconds, gaps) if seconds >= 0 and gaps >= 0 else None
