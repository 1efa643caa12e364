"""llamacpp-ngram-simple: which occurrence counts, when there is no draft, what limits one, flags."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.drafters.base import Limits
from breakeven.drafters.llamacpp_ngram_simple import LlamaNgramSimple, NgramSimpleSettings
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.errors import UsageError


def draft(context: list[int], n: int, k: int, room: int = 100) -> list[int]:
    return LlamaNgramSimple(NgramSimpleSettings(n, k)).propose(np.array(context, np.int32), room)


def test_the_latest_occurrence():
    assert draft([9, 1, 2, 7, 7, 1, 2, 8, 8, 1, 2], n=2, k=2) == [8, 8]


def test_not_the_one_at_the_first_token():
    assert draft([1, 2, 7, 7, 3, 4, 1, 2], n=2, k=2) == []
    assert draft([9, 1, 2, 7, 7, 3, 4, 1, 2], n=2, k=2) == [7, 7]


def test_a_context_of_n_plus_k_plus_2_tokens_is_too_short():
    assert draft([9, 1, 2, 7, 1, 2], n=2, k=2) == []


def test_the_last_token_is_not_drafted():
    assert draft([9, 3, 4, 1, 2, 7, 1, 2], n=2, k=3) == [7, 1]


def test_fewer_than_n_tokens_to_draft_are_none_though_an_earlier_occurrence_has_more():
    assert draft([9, 1, 2, 3, 4, 5, 6, 1, 2, 1, 2], n=2, k=3) == []


def test_room_cuts_afterwards():
    assert draft([9, 1, 2, 7, 7, 3, 4, 1, 2], n=2, k=2, room=1) == [7]


def test_the_table_is_cut_by_both_limits():
    ids = [9, 1, 2, 3, 4, 5, 6, 1, 2]
    settings = NgramSimpleSettings(2, 4)
    one = LlamaNgramSimple(settings).table(flat([(ids, [3, 4, 5])], max_tokens=[4]))
    assert one.drafted.tolist() == [3, 2, 1]
    other = LlamaNgramSimple(settings).table(flat([(ids, [3, 4, 5])], max_model_len=[12]))
    assert other.drafted.tolist() == [2, 1, 0]
    assert other.accepted.tolist() == [2, 1, 0]


def test_room_is_the_servers():
    drafter = LlamaNgramSimple(NgramSimpleSettings())
    assert drafter.room(60, 20, Limits(max_tokens=30, max_model_len=100)) == 9
    assert drafter.room(60, 20, Limits(max_tokens=300, max_model_len=100)) == 39


@pytest.mark.parametrize("settings", [{"n": 0}, {"n": 1025}, {"k": 0}, {"k": 1025}])
def test_wrong_settings(settings: dict[str, int]):
    with pytest.raises(UsageError, match="from 1 to 1024"):
        make_drafter("llamacpp-ngram-simple", settings)


def test_flags():
    assert LlamaNgramSimple(NgramSimpleSettings()).flags() == (
        "--spec-type ngram-simple --spec-ngram-simple-size-n 12 --spec-ngram-simple-size-m 48"
    )
