"""ngram-mod: the chain, what is learned when, and when all is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breakeven.drafters.base import Limits
from breakeven.drafters.llamacpp_ngram_mod import LlamaNgramMod, NgramModSettings

ROOM = 100


def begun(n: int, n_min: int, n_max: int, prompt: Sequence[int]) -> LlamaNgramMod:
    drafter = LlamaNgramMod(NgramModSettings(n, n_min, n_max))
    begin(drafter, prompt)
    return drafter


def begin(drafter: LlamaNgramMod, prompt: Sequence[int]) -> None:
    drafter.begin(np.array(prompt, np.int32), Limits())


def propose(drafter: LlamaNgramMod, context: Sequence[int], room: int = ROOM) -> list[int]:
    return drafter.propose(np.array(context, np.int32), room)


def test_follows_the_latest_next_tokens_to_an_unknown_n_gram() -> None:
    prompt = [1, 2, 3, 4, 8, 2, 3, 5, 6, 1]
    assert propose(begun(2, 0, 9, prompt), [*prompt, 2]) == [3, 5, 6, 1]


def test_a_chain_shorter_than_n_min_is_dropped_but_room_only_cuts() -> None:
    prompt = [1, 2, 3, 4, 5, 1]
    assert propose(begun(2, 4, 9, prompt), [*prompt, 2]) == [3, 4, 5, 1]
    assert propose(begun(2, 5, 9, prompt), [*prompt, 2]) == []
    assert propose(begun(2, 4, 9, prompt), [*prompt, 2], room=1) == [3]


def test_with_n_min_above_n_max_only_whole_drafts_are_made() -> None:
    prompt = [1, 2, 3, 4, 5, 1]
    assert propose(begun(2, 9, 3, prompt), [*prompt, 2]) == [3, 4, 5]
    assert propose(begun(2, 9, 5, prompt), [*prompt, 2]) == []


def test_tokens_that_share_a_slot_draft_for_each_other() -> None:
    prompt = [1, 7, 1, 7, 5]
    assert propose(begun(1, 0, 1, prompt), [*prompt, 1 + 2**22]) == [7]


def test_output_is_learned_once_more_than_32_less_n_tokens_are_new() -> None:
    prompt = [0, 0, 0, 0]
    new = list(range(1, 30))
    assert propose(begun(2, 0, 1, prompt), [*prompt, *new, 1, 2]) == []
    assert propose(begun(2, 0, 1, prompt), [*prompt, *new, 30, 1, 2]) == [3]


def test_other_requests_are_drafted_from() -> None:
    drafter = begun(2, 0, 2, [1, 2, 3, 4, 5])
    begin(drafter, [8, 9, 8, 1])
    assert propose(drafter, [8, 9, 8, 1, 2]) == [3, 4]


def test_five_low_drafts_running_empty_the_table() -> None:
    prompt = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]
    drafter = begun(2, 0, 8, prompt)
    for accepted in (1, 1, 1, 1, 2, 1, 1, 1, 1):
        assert len(propose(drafter, [*prompt, 2])) == 8
        drafter.accept(accepted)
    begin(drafter, [0, 0, 0])
    assert len(propose(drafter, [0, 1, 2], room=1)) == 1
    drafter.accept(1)
    assert propose(drafter, [0, 1, 2]) == []


def test_after_emptying_the_whole_request_is_learned_again() -> None:
    prompt = [*range(40), 0]
    drafter = begun(2, 0, 8, prompt)
    for _ in range(5):
        assert propose(drafter, [*prompt, 1]) == [2, 3, 4, 5, 6, 7, 8, 9]
        drafter.accept(0)
    assert propose(drafter, [*prompt, 1]) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_a_prompt_that_fills_more_than_a_quarter_empties_the_table() -> None:
    drafter = begun(2, 0, 1, [1, 2, 3, 4, 1])
    assert propose(drafter, [1, 2, 3, 4, 1, 2]) == [3]
    filler = np.random.default_rng(3).integers(10, 2**31 - 1, 1_300_000, np.int32)
    drafter.begin(filler[:1_000_000], Limits())
    assert propose(drafter, [1, 2, 3, 4, 1, 2]) == [3]
    drafter.begin(filler[1_000_000:], Limits())
    assert propose(drafter, [1, 2, 3, 4, 1, 2]) == []


def test_the_last_n_gram_has_no_next_token_and_a_short_prompt_no_n_gram() -> None:
    assert propose(begun(2, 0, 3, [1, 2]), [1, 2, 3]) == []
    assert propose(begun(3, 0, 3, [1, 2]), [1, 2, 3]) == []
