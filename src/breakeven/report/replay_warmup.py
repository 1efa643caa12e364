"""Warm-up: how a drafter that learns did on the first requests of a record, and on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.replay.records import Replay, RequestReplay

PARTS = 10
"""The first of so many equal parts of the record is compared with the rest."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Requests that follow one another in the record."""

    requests: int
    tokens_per_step: float


@dataclass(frozen=True, slots=True)
class WarmUp:
    first_tenth: Stretch
    rest: Stretch


def warm_up(replay: Replay) -> WarmUp | str:
    """The first tenth of the requests (rounded down) and the rest, or why they are not compared."""
    if not replay.learns:
        return "with these settings the drafter learns nothing from one request for the next"
    tenth = len(replay.requests) // PARTS
    if not tenth:
        return f"the record has fewer than {PARTS} requests"
    first, rest = _stretch(replay.requests[:tenth]), _stretch(replay.requests[tenth:])
    if first is None or rest is None:
        return "the first tenth of the requests, or the rest, has no decode step"
    return WarmUp(first, rest)


def _stretch(requests: Sequence[RequestReplay]) -> Stretch | None:
    steps = sum(one.counters.steps or 0 for one in requests)
    emitted = sum(one.emitted_tokens for one in requests)
    return Stretch(len(requests), emitted / steps) if steps else None
