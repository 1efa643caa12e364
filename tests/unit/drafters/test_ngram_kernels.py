"""The index of first occurrences: any pace gives the same answers, and a new request starts afresh."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.drafters._hash import LOW
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


def filled_in_a_row(index: Index) -> int:
    """The most slots side by side that are taken: so many a look may go through."""
    free = np.flatnonzero(np.append(0, index.roots) == 0)
    return int(np.diff(free).max())


def in_one_slot(factor: int, shift: int, tokens: int) -> Ids:
    """Ids of which any two that follow each other hash to the first slot, or the one behind it."""
    vocabulary = np.arange(200_000, dtype=object)
    ids, used = [1], {1}
    for _ in range(tokens - 1):
        slots = ((ids[-1] << 31 | vocabulary) * factor & LOW) >> shift
        ids.append(next(int(token) for token in np.flatnonzero(slots < 2) if token not in used))
        used.add(ids[-1])
    return np.array(ids, np.int32)


def test_nobody_can_write_a_prompt_that_fills_one_place_of_the_slots():
    index = new_index(150, CAPS)
    renew(index, 150)
    ids = in_one_slot(int(index.state[3]), int(index.state[2]), 150)
    learnt(index, ids, 151, root=2)
    assert filled_in_a_row(index) > 140
    index = new_index(150, CAPS)
    learnt(index, ids, 151, root=2)
    assert filled_in_a_row(index) < 30


def test_the_hash_makes_no_difference_to_an_answer():
    ids = some_ids(4, 4)
    index = new_index(300, CAPS)
    found = learnt(index, ids, 301)
    index.state[3] = 1
    assert learnt(index, ids, 301) == found
