"""vllm-ngram: settings as vLLM resolves them, drafts of small contexts, what limits them, flags."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.drafters.base import Limits
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.drafters.vllm_ngram import VllmNgram, VllmNgramSettings
from breakeven.errors import UsageError


def draft(context: list[int], k: int, min_n: int, max_n: int, room: int = 100) -> list[int]:
    return VllmNgram(VllmNgramSettings(k, min_n, max_n)).propose(np.array(context, np.int32), room)


@pytest.mark.parametrize(
    ("min_n", "max_n", "resolved"),
    [(None, None, (5, 5)), (2, None, (2, 2)), (None, 7, (7, 7)), (2, 4, (2, 4))],
)
def test_n_left_out_is_as_vllm_resolves_it(min_n: int | None, max_n: int | None, resolved: tuple[int, int]):
    settings = VllmNgramSettings(min_n=min_n, max_n=max_n)
    assert (settings.min_n, settings.max_n) == settings.n_range == resolved


@pytest.mark.parametrize("settings", [{"k": 0}, {"k": -3}, {"min_n": 0}, {"min_n": 4, "max_n": 3}])
def test_wrong_settings(settings: dict[str, int]):
    with pytest.raises(UsageError, match=r"type --set (k|min_n|max_n)="):
        make_drafter("vllm-ngram", settings)


def test_the_longest_n_gram_comes_before_the_earliest():
    assert draft([2, 9, 1, 2, 8, 1, 2], 1, 1, 2) == [8]
    assert draft([2, 9, 1, 2, 8, 1, 2], 1, 1, 1) == [9]


def test_of_equally_long_ones_the_first_is_taken():
    assert draft([1, 2, 7, 1, 2, 8, 1, 2], 2, 2, 2) == [7, 1]


def test_a_match_may_overlap_the_end_and_ends_there():
    assert draft([5, 5, 5, 5], 5, 2, 4) == [5]


def test_nothing_repeated_is_no_draft():
    assert draft([1, 2, 3], 5, 1, 3) == []
    assert draft([1], 5, 1, 3) == []


def test_room_cuts_the_draft():
    assert draft([1, 2, 3, 4, 1, 2], 3, 2, 2, room=2) == [3, 4]


def test_the_token_after_the_draft_must_fit_the_model():
    drafter = VllmNgram(VllmNgramSettings())
    assert drafter.room(96, 10, Limits(max_tokens=11, max_model_len=100)) == 3
    assert drafter.room(96, 10, Limits()) > 10**9


def test_the_drafter_rests_where_k_tokens_would_not_fit():
    drafter = VllmNgram(VllmNgramSettings(k=5))
    assert drafter.room(97, 10, Limits(max_model_len=100)) == 0


def test_the_table_is_cut_by_the_model_too():
    tokens = flat([([1, 2, 3, 4, 1, 2], [3, 4, 1, 2])], max_model_len=[10])
    table = VllmNgram(VllmNgramSettings(k=5, min_n=2, max_n=3)).table(tokens)
    assert table.drafted.tolist() == [3, 0, 0, 0]
    assert table.accepted.tolist() == [3, 0, 0, 0]


def test_no_requests():
    assert len(VllmNgram(VllmNgramSettings()).table(flat([])).drafted) == 0
    assert list(VllmNgram.tables(flat([]), [])) == []


def test_flags_name_both_n():
    assert VllmNgram(VllmNgramSettings(k=3, max_n=4)).flags() == (
        '--speculative-config \'{"method":"ngram","num_speculative_tokens":3,'
        '"prompt_lookup_min":4,"prompt_lookup_max":4}\''
    )
