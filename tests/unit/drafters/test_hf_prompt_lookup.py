"""hf-prompt-lookup: drafts of small contexts, end-of-sequence tokens, max_length, settings."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.drafters.base import Limits
from breakeven.drafters.hf_prompt_lookup import HfPromptLookup, HfPromptLookupSettings
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.errors import UsageError


def draft(context: list[int], k: int = 10, max_n: int = 2, eos: str = "") -> list[int]:
    settings = HfPromptLookupSettings(k, max_n, eos)
    return HfPromptLookup(settings).propose(np.array(context, np.int32), 100)


def test_down_to_one_token_the_first_occurrence():
    assert draft([2, 9, 1, 2, 8, 1, 2], k=1) == [8]
    assert draft([2, 9, 1, 8, 3, 2], k=2) == [9, 1]


def test_no_occurrence_is_no_draft():
    assert draft([1, 2, 3]) == []
    assert draft([]) == []


def test_the_draft_ends_before_the_first_eos():
    assert draft([1, 2, 3, 0, 4, 1], eos="0") == [2, 3]
    assert draft([1, 2, 3, 0, 4, 1], eos="7, 3") == [2]


def test_eos_first_is_no_draft_though_a_shorter_n_gram_has_one():
    assert draft([2, 9, 1, 2, 0, 1, 2], max_n=2, eos="0") == []


def test_no_draft_when_one_token_is_left_but_longer_than_fits_before():
    room = HfPromptLookup(HfPromptLookupSettings()).room
    assert room(98, 8, Limits(max_tokens=10)) > 10
    assert room(99, 9, Limits(max_tokens=10)) == 0
    assert room(99, 9, Limits(max_tokens=30, max_model_len=100)) == 0
    assert room(99, 9, Limits()) > 10


def test_the_table_knows_eos_and_max_length():
    tokens = flat([([1, 2, 3, 0, 4], [1, 2, 3, 0, 4])], max_tokens=[5])
    settings = [HfPromptLookupSettings(k=4, eos_token_ids=ids) for ids in ("", "0")]
    plain, cut = HfPromptLookup.tables(tokens, settings)
    assert plain.drafted.tolist() == [0, 4, 4, 4, 0]
    assert plain.accepted.tolist() == [0, 4, 3, 2, 0]
    assert cut.drafted.tolist() == [0, 2, 1, 0, 0]


@pytest.mark.parametrize("settings", [{"k": 0}, {"max_n": 0}, {"eos_token_ids": "2;3"}, {"eos_token_ids": 2}])
def test_wrong_settings(settings: dict[str, object]):
    with pytest.raises(UsageError, match="type "):
        make_drafter("hf-prompt-lookup", settings)


def test_flags_are_arguments_of_generate():
    expected = "prompt_lookup_num_tokens=10, max_matching_ngram_size=2"
    assert HfPromptLookup(HfPromptLookupSettings()).flags() == expected
