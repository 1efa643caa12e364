"""The load of a page, from the names that an engine gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from breakeven.acceptance.exposition import Samples, fullest, gauge, total
from breakeven.acceptance.load import Load


def load_of(
    samples: Samples,
    counters: Mapping[str, str],
    running: str,
    waiting: str,
    usage: Sequence[str] = (),
    token_s: tuple[float, float] | None = None,
) -> Load:
    """`counters` are names by field of Load; of `usage`, the first that the page has counts."""
    return Load(
        **{field: total(samples, name) for field, name in counters.items()},
        running=gauge(samples, running),
        waiting=gauge(samples, waiting),
        kv_usage=fullest(samples, *usage),
        token_s=token_s,
    )
