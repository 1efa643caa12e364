"""Batch: as many recorded requests as fit into a bounded number of tokens; the unit of work of a replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.tokens import NOT_RECORDED, Tokens, flat
from breakeven.replay.records import RecordedRequest

BATCH_TOKENS = 1 << 18
"""Memory stays at a few batches per core (or one request, if that is longer), however long the record."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some requests as flat tokens, and what else their counts are sorted by."""

    tokens: Tokens
    ids: tuple[str, ...]
    categories: tuple[str, ...]
    answer_from: NDArray[np.int64]
    """Reasoning tokens at the head of each output; −1 where the record does not tell. Shape (requests,)."""


def batches(requests: Iterable[RecordedRequest], most_tokens: int = BATCH_TOKENS) -> Iterator[Batch]:
    """The requests in their order, at least one in each batch."""
    held: list[RecordedRequest] = []
    tokens = 0
    for request in requests:
        size = len(request.prompt) + len(request.output)
        if held and tokens + size > most_tokens:
            yield batch_of(held)
            held, tokens = [], 0
        held.append(request)
        tokens += size
    if held:
        yield batch_of(held)


def batch_of(requests: list[RecordedRequest]) -> Batch:
    """These requests as one batch."""
    tokens = flat(
        [(request.prompt, request.output) for request in requests],
        [request.max_tokens for request in requests],
        [request.max_model_len for request in requests],
        _recorded(requests),
    )
    answers = [-1 if r.answer_from is None else min(r.answer_from, len(r.output)) for r in requests]
    return Batch(
        tokens,
        tuple(request.id for request in requests),
        tuple(request.category for request in requests),
        np.array(answers, np.int64),
    )


def _recorded(requests: list[RecordedRequest]) -> dict[str, NDArray[np.int32]]:
    names = dict.fromkeys(name for request in requests for name in request.recorded)
    return {
        name: np.concatenate(
            [
                request.recorded.get(name, np.full(len(request.output), NOT_RECORDED, np.int32))
                for request in requests
            ]
        )
        for name in names
    }
