"""What in a record makes a forecast's figures mean something else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breakeven.forecast.collected import Requests
from breakeven.units import count

MOST_NAMED = 5
"""Categories in one sentence."""
MOST_OF_ALL = 0.5
"""Of the time that a record takes at a concurrency, c · longest / sum of its outputs."""


def doubts(requests: Requests, concurrencies: Sequence[int]) -> list[str]:
    """Each a sentence."""
    said = loops(requests)
    if alone := _alone(requests):
        said.append(
            f"{alone} one request: an interval of a single request holds the error of the cost alone, and "
            "not how others would differ"
        )
    return [*said, *drained(requests, concurrencies)]


def loops(requests: Requests) -> list[str]:
    """Of outputs that repeat themselves to their end."""
    if not requests.degenerate:
        return []
    return [
        f"{count(requests.degenerate, 'output')} of {len(requests.output_tokens)} end in a loop: they "
        "inflate acceptance, and say nothing of real text"
    ]


def drained(requests: Requests, concurrencies: Sequence[int]) -> list[str]:
    """Of a record too short for the concurrencies, which are in order."""
    steps = requests.emitted_tokens
    ruled = next((c for c in concurrencies if steps.max() * c > MOST_OF_ALL * steps.sum()), None)
    if ruled is None or len(steps) == 1:
        return []
    return [
        f"from concurrency {ruled} on, the longest output ({count(int(steps.max()), 'token')}) is "
        "decoded for over half of the time that the record takes: throughput there is that of a batch "
        "that drains; a record with more requests would tell more"
    ]


def _alone(requests: Requests) -> str:
    """What has but one request, before `one request`; empty if nothing has."""
    if len(requests.output_tokens) == 1:
        return "the record has"
    sizes = np.bincount(requests.category, minlength=len(requests.categories))
    names = [name or "(none)" for name, n in zip(requests.categories, sizes, strict=True) if n == 1]
    if not names:
        return ""
    if len(names) > MOST_NAMED:
        return f"{len(names)} categories have each"
    return f"{', '.join(names)} {'has' if len(names) == 1 else 'have each'}"
