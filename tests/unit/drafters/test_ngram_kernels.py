"""The index of first occurrences: any pace gives the same answers, and a new request starts afresh."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.drafters._ngram_kernels import LEAF, Index, learn, new_index, renew

CAPS = np.array([2, 3, 24], np.int64)
Ids = np.ndarray[tuple[int], np.dtype[np.int32]]


def some_ids(seed: int, symbols: int, tokens: int = 300) -> Ids:
    ids = np.random.default_rng(seed).integers(0, symbols, tokens).astype(np.int32)
    ids[200:260] = ids[100:160]
    return ids


def learnt(index: Index, ids: Ids, pace: int, root: int = 1) -> tuple[list[int], list[list[int]]]:
    """Length and first ends (0 without a match) at all positions."""
    renew(index, len(ids))
    for begin in range(0, len(ids) + 1, pace):
        end = min(begin + pace, len(ids) + 1)
        learn(index, ids[: end - 1], root, begin, end)
    length = index.length[: len(ids) + 1]
    return length.tolist(), np.where(length > 0, index.first[:, : len(ids) + 1], 0).tolist()


@pytest.mark.parametrize("symbols", [2, 4, 50])
@pytest.mark.parametrize("pace", [1, 7])
def test_tokens_may_come_one_by_one(symbols: int, pace: int):
    ids = some_ids(0, symbols)
    assert learnt(new_index(300, CAPS), ids, pace) == learnt(new_index(300, CAPS), ids, 301)


def test_the_longest_match_goes_to_the_cap():
    length, first = learnt(new_index(300, CAPS), some_ids(1, 10_000), 301)
    assert max(length) == 24
    assert length[210] == 10
    assert [row[260] for row in first] == [160, 160, 160]


def test_nothing_is_left_of_an_earlier_request():
    index = new_index(300, CAPS)
    fresh = learnt(new_index(300, CAPS), some_ids(3, 4, 280), 281)
    learnt(index, some_ids(2, 4), 301)
    assert learnt(index, some_ids(3, 4, 280), 281) == fresh


def test_slots_are_cleared_before_their_stamp_overflows():
    index = new_index(300, CAPS)
    fresh = learnt(new_index(300, CAPS), some_ids(3, 4), 301)
    index.state[0] = LEAF - 900
    learnt(index, some_ids(2, 4), 301)
    assert learnt(index, some_ids(3, 4), 301) == fresh
    assert index.state[0] == 0
