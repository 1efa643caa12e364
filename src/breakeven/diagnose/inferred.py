"""Inferred: how a server drafts, as far as what it counted tells it."""

from __future__ import annotations

from breakeven.acceptance.counters import LEAST_DRAFTS, SpecCounters
from breakeven.diagnose.gather import sources_of
from breakeven.diagnose.readings import Readings
from breakeven.diagnose.told import Told

VLLM = "vLLM"
"""In the source of its counts."""


def inferred(read: Readings) -> Told:
    """The method by the drafter that the log names, and the window."""
    log = read.log
    method = next(iter(log.drafters), None) if log is not None else None
    windows = (log.window if log is not None else None, *map(window_of, sources_of(read)))
    return Told(method, next(filter(None, windows), None))


def window_of(counters: SpecCounters) -> int | None:
    """Tokens of a draft at most; None where the counts do not tell it.

    vLLM lists every position of its window: that is it, where the mean draft is longer than all but the last.
    Others list positions up to the last that was accepted: all drafts of a hundred must be as long.
    """
    positions, drafts, drafted = (
        len(counters.accepted_per_position or ()),
        counters.drafts,
        counters.drafted_tokens,
    )
    if not positions or not drafts or drafted is None:
        return None
    if VLLM in counters.source:
        return positions if positions - 1 < drafted / drafts <= positions else None
    return positions if drafts >= LEAST_DRAFTS and drafted == drafts * positions else None
