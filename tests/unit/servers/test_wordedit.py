import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.servers.wordedit import WordEdit, digest

WORD = st.text("ab \n\t-", max_size=6)


@given(st.lists(WORD), st.lists(WORD))
def test_undone_the_words_are_those_before(before, after):
    edit = WordEdit.from_json(json.loads(json.dumps(WordEdit.between(before, after).to_json())))
    assert edit.undone(after) == tuple(before)
    assert (digest(before), digest(after)) == (edit.digest_before, edit.digest_after)


@pytest.mark.parametrize(
    "words", [("vllm", "serve", "--api-key", "sk-mine"), ("sh", "-c", "vllm serve m --api-key sk-mine 2>&1")]
)
def test_no_word_that_stays_is_kept(words):
    after = (*words[:-1], words[-1].replace(" 2>&1", " --k '{\"a\": 1}' 2>&1"), "--k", "5")
    edit = WordEdit.between(words, after)
    assert "sk-mine" not in json.dumps(edit.to_json())
    assert edit.undone(after) == words


def test_two_lists_of_the_same_text_differ():
    assert digest(("a b",)) != digest(("a", "b"))
