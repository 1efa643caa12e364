import json
import shutil
import subprocess

import numpy as np
import pytest

from breakeven.drafters.base import Limits
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.trtllm_ngram import Continuations, TrtllmNgram, TrtllmNgramSettings
from breakeven.errors import UsageError


def ids(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def start(prompt: np.ndarray, **settings: object) -> TrtllmNgram:
    drafter = TrtllmNgram(TrtllmNgramSettings(**{"padding": False, **settings}))
    drafter.begin(prompt, Limits())
    return drafter


def test_the_longest_ngram_and_the_oldest_or_newest_continuation():
    text = ids(1, 2, 3, 1, 2, 4, 9, 2, 5, 1, 2)
    assert start(text, k=1).propose(text, 99) == [3]
    assert start(text, k=1, is_use_oldest=False).propose(text, 99) == [4]
    assert start(text, k=1, is_use_oldest=False, max_n=1).propose(text, 99) == [5]


def test_an_ngram_may_overlap_its_continuation():
    assert start(ids(5, 5, 5)).propose(ids(5, 5, 5), 99) == [5]


def test_padding_is_drafted_too_and_room_cuts_it():
    drafter = start(ids(1), padding=True)
    assert drafter.propose(ids(1, 2), 99) == [0, 0, 0]
    assert drafter.propose(ids(1, 2, 1), 2) == [2, 1]
    assert drafter.propose(ids(1, 2, 1, 3), 1) == [0]


def test_without_room_nothing_is_learned():
    drafter = start(ids(1, 2, 3))
    assert drafter.propose(ids(1, 2, 3, 1), 0) == []
    drafter.begin(ids(2), Limits())
    assert drafter.propose(ids(2), 5) == []


@pytest.mark.parametrize(("public", "draft"), [(True, [3]), (False, [])])
def test_a_pool_for_all_requests_or_one_for_each(public: bool, draft: list[int]):
    drafter = start(ids(1), is_public_pool=public)
    drafter.propose(ids(1, 2, 3), 99)
    drafter.begin(ids(9), Limits())
    assert drafter.propose(ids(9, 2), 99) == draft


def test_room_is_that_of_the_request_and_of_the_server():
    drafter = start(ids(1))
    assert drafter.room(30, 10, Limits(max_tokens=16)) == 5
    assert drafter.room(30, 10, Limits(max_tokens=16, max_model_len=34)) == 3
    assert drafter.room(30, 10, Limits()) > 10**9


def test_what_stands_after_a_removed_continuation_escapes():
    kept = Continuations()
    for new in (b"a", b"b", b"c", b"dd"):
        kept.file(new, full_bytes=3)
    assert [match for match, _ in kept.cut] == [b"b", b"dd"]
    kept.file(b"eee", full_bytes=3)
    assert (kept.oldest(), kept.newest()) == (b"dd", b"eee")


def test_a_full_continuation_between_two_short_ones_is_what_escapes():
    kept = Continuations()
    for new in (b"aa", b"bbb", b"c", b"ddd"):
        kept.file(new, full_bytes=3)
    assert (kept.cut, list(kept.full)) == ([], [b"bbb", b"ddd"])


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_flags_are_words_for_bash():
    option, _, value = make_drafter("trtllm-ngram", {"k": 4, "is_use_oldest": False}).flags().partition(" ")
    shown = subprocess.run(["bash", "-c", f"cat {value}"], check=True, capture_output=True)
    assert option == "--config"
    assert json.loads(shown.stdout) == {
        "disable_overlap_scheduler": True,
        "speculative_config": {
            "decoding_type": "NGram",
            "max_draft_len": 4,
            "max_matching_ngram_size": 2,
            "is_keep_all": True,
            "is_use_oldest": False,
            "is_public_pool": True,
        },
    }


def test_wrong_settings():
    with pytest.raises(UsageError, match="k is from 1 to 1024"):
        make_drafter("trtllm-ngram", {"k": 0})
