"""How the index of a request grows, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.guard.match_index import BYTES_PER_TOKEN, LEAST_TOKENS, LongestMatch, capacity


def test_a_context_without_a_repeat_has_no_match() -> None:
    index = LongestMatch(2, 8)
    assert index.match(5).length == 0
    index.append(np.arange(50, dtype=np.int32))
    found = index.match(5)
    assert (found.length, found.period, found.draft.tolist()) == (0, 0, [])


def test_of_two_occurrences_the_first_counts() -> None:
    index = LongestMatch(2, 8)
    index.append(np.array([1, 2, 3, 9, 1, 2, 4, 1, 2], np.int32))
    found = index.match(2)
    assert (found.length, found.period, found.draft.tolist()) == (2, 7, [3, 9])


def test_a_longer_match_beats_an_earlier_one() -> None:
    index = LongestMatch(2, 8)
    index.append(np.array([1, 2, 3, 9, 1, 2, 4, 9, 1, 2], np.int32))
    assert index.match(1).draft.tolist() == [4]


def test_a_shorter_match_than_asked_for_is_none() -> None:
    index = LongestMatch(3, 8)
    index.append(np.array([1, 2, 3, 1, 2], np.int32))
    assert index.match(4).length == 0
    index.append(np.array([3], np.int32))
    assert index.match(4).length == 3


def test_the_draft_ends_with_the_context() -> None:
    index = LongestMatch(2, 8)
    index.append(np.array([5, 5, 5], np.int32))
    found = index.match(10)
    assert (found.length, found.period, found.draft.tolist()) == (2, 1, [5])
    assert index.match(0).draft.tolist() == []


def test_its_place_doubles() -> None:
    index = LongestMatch(2, 8, 3)
    assert len(index.buffer) == LEAST_TOKENS
    index.append(np.zeros(LEAST_TOKENS + 1, np.int32))
    assert len(index.buffer) == 2 * LEAST_TOKENS
    assert len(index) == LEAST_TOKENS + 1


@pytest.mark.parametrize("tokens", (1024, 1025, 100_000))
def test_what_a_token_takes(tokens: int) -> None:
    index = LongestMatch(2, 8, tokens)
    size = capacity(tokens)
    assert tokens <= size < max(2 * tokens, LEAST_TOKENS + 1)
    taken = index.buffer.nbytes + sum(array.nbytes for array in index._index)
    assert taken / size == pytest.approx(BYTES_PER_TOKEN, abs=0.1)
