"""ngram-cache: which counts draft, and what is never counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from breakeven.drafters.llamacpp_ngram_cache import LlamaNgramCache, NgramCacheSettings

ROOM = 100


def propose(drafter: LlamaNgramCache, context: Sequence[int], room: int = ROOM) -> list[int]:
    return drafter.propose(np.array(context, np.int32), room)


def first(context: Sequence[int], room: int = 1) -> list[int]:
    return propose(LlamaNgramCache(NgramCacheSettings()), context, room)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ([1, 2, 3, 9, 8, 1, 2, 3], [9]),
        ([2, 3, 9, 8, 7, 2, 3], []),
        ([2, 3, 9, 8, 2, 3, 9, 7, 6, 2, 3], [9]),
        ([3, 9, 3], []),
        ([3, 9, 10, 3, 9, 11, 3], [9]),
        ([3, 9, 10, 3, 9, 11, 3, 8, 12, 3], [9]),
        ([3, 9, 10, 3, 9, 11, 3, 9, 12, 3, 8, 13, 3, 8, 14, 3], []),
    ],
    ids=["3-gram once", "2-gram once", "2-gram twice", "once", "twice", "2 of 3", "3 of 5"],
)
def test_an_n_gram_drafts_if_seen_often_enough_with_one_token(
    context: list[int], expected: list[int]
) -> None:
    assert first(context) == expected


def test_of_two_tokens_alike_the_one_first_seen_later_is_drafted() -> None:
    assert first([1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 3]) == [9]
    assert first([1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 3, 9, 1, 2, 3, 8, 1, 2, 3]) == [9]


def test_drafts_at_most_eight_tokens_and_at_most_the_room() -> None:
    context = [*range(20), 0, 1, 2]
    assert first(context, ROOM) == [3, 4, 5, 6, 7, 8, 9, 10]
    assert first(context, 3) == [3, 4, 5]


def test_an_n_gram_across_the_border_of_two_steps_is_never_counted() -> None:
    one_by_one, at_once = LlamaNgramCache(NgramCacheSettings()), LlamaNgramCache(NgramCacheSettings())
    output = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3]
    for end in range(1, len(output)):
        assert propose(one_by_one, [0, *output[:end]]) == []
    assert propose(one_by_one, [0, *output]) == []
    assert propose(at_once, [0, *output])[:1] == [4]


def test_a_next_request_teaches_only_behind_the_longest_context_yet() -> None:
    drafter = LlamaNgramCache(NgramCacheSettings())
    propose(drafter, [*range(10)])
    assert propose(drafter, [20, 21, 22, 23, 20, 21, 22]) == []
    longer = [*range(30, 40), 20, 21, 22, 23, 20, 21, 22]
    assert propose(drafter, longer)[:1] == [23]
    assert propose(drafter, [50, 20, 21, 22], room=1) == [23]


def test_a_context_of_one_token_drafts_nothing() -> None:
    drafter = LlamaNgramCache(NgramCacheSettings())
    context = [1, 2, 1, 2, 1]
    assert propose(drafter, context, room=1) == [2]
    assert propose(drafter, [1]) == []
    assert propose(drafter, [8, 1], room=1) == [2]
