"""ngram-map-k and ngram-map-k4v: what is found, what is learned, what outlives a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.base import Drafter, Limits
from breakeven.drafters.llamacpp_ngram_map import (
    LlamaNgramMapK,
    LlamaNgramMapK4V,
    NgramMapK4VSettings,
    NgramMapKSettings,
)

ROOM = 100


def map_k(n: int, m: int) -> LlamaNgramMapK:
    return LlamaNgramMapK(NgramMapKSettings(n, m))


def map_k4v(n: int, m: int, min_hits: int = 1) -> LlamaNgramMapK4V:
    return LlamaNgramMapK4V(NgramMapK4VSettings(n, m, min_hits))


def begin(drafter: Drafter[Any], prompt: Sequence[int]) -> None:
    drafter.begin(np.array(prompt, np.int32), Limits())


def propose(drafter: Drafter[Any], context: Sequence[int], room: int = ROOM) -> list[int]:
    return list(drafter.propose(np.array(context, np.int32), room))


def test_drafts_what_followed_the_latest_place_in_the_prompt() -> None:
    drafter = map_k(2, 3)
    prompt = [9, 1, 2, 10, 11, 12, 1, 2, 20, 21, 22, 30, 31, 32, 33, 1]
    begin(drafter, prompt)
    assert propose(drafter, [*prompt, 2], room=2) == [20, 21]


def test_the_first_place_and_the_last_of_the_prompt_are_never_found() -> None:
    drafter = map_k(2, 3)
    prompt = [1, 2, *range(20, 29), 3, 4, 5, 6, 3]
    begin(drafter, prompt)
    assert propose(drafter, [*prompt, 4]) == []
    later = [*prompt, 4, *range(30, 37)]
    assert propose(drafter, [*later, 1, 2]) == []
    assert propose(drafter, [*later, 1, 2, *range(40, 47), 3, 4]) == []
    assert propose(drafter, [*later, 1, 2, *range(40, 47), 3, 4, 30, 31]) == [32, 33, 34]


def test_needs_two_n_grams_and_a_draft_before_the_token_sampled_last() -> None:
    context = [9, 1, 2, 3, 1, 2, 3]
    assert propose(map_k(3, 1), context) == []
    drafter = map_k(3, 1)
    begin(drafter, [9, *context[:-1]])
    assert propose(drafter, [9, *context]) == [1]


def test_no_draft_exceeds_the_last_accepted_length_of_its_n_gram() -> None:
    drafter = map_k(1, 3)
    prompt = [9, 1, 2, 3, 4, 5, 6, 7, 8]
    begin(drafter, prompt)
    drafts = []
    context = [*prompt]
    for accepted in (2, 1, 0, 0):
        context = [*context, 9, 1]
        drafts.append(propose(drafter, context))
        if drafts[-1]:
            drafter.accept(accepted)
    assert drafts == [[2, 3, 4], [2, 3], [2], []]


def test_an_n_gram_whose_bucket_is_taken_is_found_only_while_it_is_new() -> None:
    one, other = 1, 1 + 2**18
    prompt = [9, one, 5, 30, 31, 32]
    context = [*prompt, 40, 41, 42, other, 6, 50, 51]
    drafter = map_k(1, 1)
    begin(drafter, prompt)
    assert propose(drafter, [*context, other]) == [6]
    drafter = map_k(1, 1)
    begin(drafter, prompt)
    assert propose(drafter, context) == []
    assert propose(drafter, [*context, other]) == []


def test_k4v_drafts_only_if_one_continuation_has_twice_the_others() -> None:
    def drafted(continuations: Sequence[int]) -> list[int]:
        drafter = map_k4v(1, 1)
        prompt = [9, *(token for one in continuations for token in (1, one)), 8, 8, 8, 8]
        begin(drafter, prompt)
        return propose(drafter, [*prompt, 1])

    assert drafted([5, 5, 6]) == [6]
    assert drafted([5, 6]) == []
    assert drafted([5, 5, 6, 7]) == []
    assert drafted([5, 5, 5, 5, 6, 7]) == [7]
    assert drafted([2, 3, 4, 5, 6]) == []


def test_k4v_knows_four_continuations_only() -> None:
    drafter = map_k4v(1, 1)
    prompt = [9, *(token for one in (2, 3, 4, 5, *[6] * 20) for token in (1, one)), 8, 8, 8, 8]
    begin(drafter, prompt)
    assert propose(drafter, [*prompt, 1]) == []


def test_k4v_waits_for_min_hits() -> None:
    drafter = map_k4v(1, 2, min_hits=3)
    prompt = [9, 1, 2, 3, 4, 5, 6]
    begin(drafter, prompt)
    drafts = []
    context = [*prompt]
    for _ in range(3):
        context = [*context, 7, 1]
        drafts.append(propose(drafter, context))
    assert drafts == [[], [], [2, 3]]


def test_a_longer_next_prompt_keeps_what_was_learned_of_the_same_places() -> None:
    drafter = map_k(1, 3)
    prompt = [9, 1, 2, 3, 4, 5, 6, 7, 8]
    begin(drafter, prompt)
    assert propose(drafter, [*prompt, 1]) == [2, 3, 4]
    drafter.accept(1)
    begin(drafter, [*prompt, 1, 2, 0, 0, 0, 0, 0])
    assert propose(drafter, [*prompt, 1, 2, 0, 0, 0, 0, 0, 1]) == [2]


def test_a_next_prompt_of_other_tokens_is_indexed_only_behind_the_earlier_request() -> None:
    drafter = map_k(1, 3)
    begin(drafter, [9, 1, 2, 3, 4, 5, 6, 7, 8])
    propose(drafter, [9, 1, 2, 3, 4, 5, 6, 7, 8, 1])
    other = [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43]
    begin(drafter, other)
    assert propose(drafter, [*other, 31]) == []
    assert propose(drafter, [*other, 31, 37]) == [38, 39, 40]


@pytest.mark.parametrize(("tokens", "expected"), [(11, [2]), (16, [])])
def test_a_prompt_shorter_than_the_earlier_request_forgets_what_its_output_taught(
    tokens: int, expected: list[int]
) -> None:
    drafter = map_k(1, 1)
    prompt = [9, 8, 7, 6, 5, 4]
    begin(drafter, prompt)
    context = [*prompt, 0, 1, 2, 3, 20, 21, 1]
    assert propose(drafter, context) == [2]
    drafter.accept(0)
    following = [*context, 30, 31, 32][:tokens]
    begin(drafter, following)
    assert propose(drafter, [*following, 1]) == expected


def test_an_indexed_place_at_the_last_possible_position_is_not_found() -> None:
    drafter = map_k(1, 1)
    begin(drafter, [9, 8, 7, 6, 5, 4])
    request = [9, 8, 7, 6, 5, 4, 0, 1, 2, 3, 20, 21]
    propose(drafter, [*request, 40])
    begin(drafter, request)
    assert propose(drafter, [*request, 3]) == []
    assert propose(drafter, [*request, 2]) == [3]
