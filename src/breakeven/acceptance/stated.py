"""Stated: a ratio of speculation with its definition, and the reason where it cannot be derived."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.acceptance.counters import DEFINITIONS, SpecCounters
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class Stated:
    """One ratio."""

    name: str
    """A key of DEFINITIONS."""
    value: Interval | None
    """Low and high differ where the source rounds what it prints. None is not derivable."""
    source: str
    why: str = ""
    """Why there is no value, a phrase; empty where there is one."""

    @property
    def definition(self) -> str:
        return DEFINITIONS[self.name]


NEEDS = {
    "acceptance_rate": ("accepted_tokens", "drafted_tokens"),
    "mean_acceptance_length": ("accepted_tokens", "drafts"),
    "tokens_per_step": ("accepted_tokens", "steps"),
    "draft_share": ("drafts", "steps"),
}
"""By ratio, the count above and the count below. For tokens per step, the emitted tokens do as well as the
accepted ones."""
WORDS = {
    "accepted_tokens": "accepted tokens",
    "drafted_tokens": "drafted tokens",
    "drafts": "steps that drafted",
    "steps": "decode steps",
}


PAGES = ("vLLM /metrics", "llama.cpp /metrics")
"""Sources that count these, where speculation is on: one that is missing was not to be had of that time."""
ON_PAGES = ("accepted_tokens", "drafted_tokens", "drafts")


def stated(counters: SpecCounters) -> tuple[Stated, ...]:
    """Every ratio of DEFINITIONS, in that order."""
    return tuple(_of(counters, name) for name in DEFINITIONS)


def exactly(name: str, value: float, source: str) -> Stated:
    """A ratio that the source gives as such."""
    return Stated(name, Interval(value, value, value), source)


def over_ranks(
    name: str, values: Sequence[float | None], source: str, weights: Sequence[float | None] | None = None
) -> Stated:
    """A ratio that each engine or data-parallel rank gives by itself, None where it gives none.

    `weights`, by rank, are the counts that the ratio divides by. The mean is weighted by them, over the ranks
    that give both; without them ranks that differ have no common ratio (sglang#34743).
    """
    pairs = zip(values, weights or [None] * len(values), strict=True)
    known = [(value, weight) for value, weight in pairs if value is not None and math.isfinite(value)]
    if not known:
        return Stated(name, None, source, f"not derivable: {source} gives none")
    if len(values) > 1:
        source = f"{source}, {len(known)} of {len(values)} ranks"
    weighed = [(value, weight) for value, weight in known if weight is not None and 0 < weight < math.inf]
    if len(weighed) == len(known):
        return exactly(name, sum(v * w for v, w in weighed) / sum(w for _, w in weighed), source)
    low, high = min(value for value, _ in known), max(value for value, _ in known)
    if low == high:
        return exactly(name, low, source)
    why = f"not derivable: the ranks that report differ, {low:.2f} to {high:.2f}, and do not say over how"
    return Stated(name, None, source, f"{why} many {WORDS[NEEDS[name][1]]}")


def _of(counters: SpecCounters, name: str) -> Stated:
    value = getattr(counters, name)
    if value is not None:
        return exactly(name, value, counters.source)
    return Stated(name, None, counters.source, _why(counters, name))


def _why(counters: SpecCounters, name: str) -> str:
    above, below = NEEDS[name]
    known = {need: getattr(counters, need) is not None for need in (above, below)}
    known[above] |= name == "tokens_per_step" and counters.emitted_tokens is not None
    unknown = [need for need in (above, below) if not known[need]]
    source = counters.source or "the source"
    uncounted = [WORDS[need] for need in unknown if not (source in PAGES and need in ON_PAGES)]
    if uncounted:
        return f"not derivable: {source} does not count {' or '.join(uncounted)}"
    if unknown:
        lost = " or ".join(WORDS[need] for need in unknown)
        return f"not derivable: {source} was read, and its {lost} are not known of this time"
    return f"not derivable: no {WORDS[below]} were counted"
