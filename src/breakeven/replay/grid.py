"""Which drafters and settings a sweep tries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from breakeven.drafters.recorded import Recorded
from breakeven.drafters.registry import drafter_class

if TYPE_CHECKING:
    from breakeven.replay.sources import Source

DRAFTERS = (
    *("vllm-ngram", "vllm-suffix", "hf-prompt-lookup", "llamacpp-ngram-simple", "llamacpp-ngram-map-k"),
    *("llamacpp-ngram-map-k4v", "llamacpp-ngram-mod", "llamacpp-ngram-cache", "sglang-ngram"),
    "trtllm-ngram",
)
"""All that have a flag in an engine: not the oracle, nor what was recorded elsewhere (recorded_grid)."""
KS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
N_RANGES = ((1, 2), (1, 3), (2, 3), (2, 4), (3, 5), (3, 7))

Setting = tuple[str, Mapping[str, Any]]
"""A drafter's name and its settings."""


def default_grid(
    drafters: Sequence[str] = DRAFTERS,
    ks: Sequence[int] = KS,
    n_ranges: Sequence[tuple[int, int]] = N_RANGES,
) -> list[Setting]:
    """Each drafter with each k and n range, as far as it has such settings.

    A drafter with one n takes the upper end of each range. Settings with which it never drafts are left out,
    unless it has no others. Raises UsageError for an unknown drafter, or a value out of its limits.
    """
    return [setting for name in dict.fromkeys(drafters) for setting in _grid(name, ks, n_ranges)]


def recorded_grid(source: Source, ks: Sequence[int] = KS) -> list[Setting]:
    """Of drafters whose acceptance the record itself holds, such as a trained head's: each of their columns
    with each k up to the most drafts that it has accepted at once, or with 1.

    Columns are looked for in the first request. A longer k is left out: nobody drafted so far there.
    """
    first = next(iter(source), None)
    longest = dict.fromkeys(first.recorded if first else (), 1)
    for request in source if longest else ():
        for name in longest.keys() & request.recorded.keys():
            longest[name] = max(longest[name], int(request.recorded[name].max()))
    return [
        (Recorded.name, {"source": name, "k": k}) for name, most in longest.items() for k in ks if k <= most
    ]


def _grid(name: str, ks: Sequence[int], n_ranges: Sequence[tuple[int, int]]) -> Iterable[Setting]:
    """Of one drafter, each setting once."""
    config = drafter_class(name).Config
    known = {field.name for field in fields(config)}
    idle: dict[str, Setting] = {}
    drafting: dict[str, Setting] = {}
    for k, (low, high) in itertools.product(ks, n_ranges):
        wanted = {"k": k, "min_k": 1, "min_n": low, "max_n": high, "n": high}
        settings = {key: value for key, value in wanted.items() if key in known}
        found = drafting if config(**settings).can_draft() else idle
        found.setdefault(str(settings), (name, settings))
    return (drafting or idle).values()
