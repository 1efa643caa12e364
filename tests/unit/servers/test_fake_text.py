from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.servers.fake.text import VOCABULARY, prompt_key, prompt_length, reply_tokens, token_text

KEYS = st.binary(min_size=1, max_size=16)


@settings(deadline=None, max_examples=60)
@given(KEYS, st.integers(0, 200), st.integers(0, 200))
def test_a_longer_reply_begins_as_the_shorter_does(key: bytes, short: int, long: int):
    short, long = sorted((short, long))
    assert reply_tokens(1, key, long)[:short] == reply_tokens(1, key, short)


@settings(deadline=None, max_examples=60)
@given(KEYS, st.integers(0, 39))
def test_a_reply_diverges_exactly_where_it_should(key: bytes, at: int):
    plain = reply_tokens(3, key, 40)
    other = reply_tokens(3, key, 40, diverge_at=at)
    assert other[:at] == plain[:at]
    assert other[at] != plain[at]


def test_seed_and_prompt_choose_the_text():
    assert reply_tokens(0, b"a", 30) != reply_tokens(0, b"b", 30)
    assert reply_tokens(0, b"a", 30) != reply_tokens(1, b"a", 30)


def test_a_loop_alternates_two_tokens():
    looped = reply_tokens(0, b"a", 30, loop_from=10)
    assert looped[:10] == reply_tokens(0, b"a", 30)[:10]
    assert looped[10] != looped[11]
    assert looped[10:] == (looped[10], looped[11]) * 10


def test_the_vocabulary_is_text_that_is_hard_to_carry():
    assert len(set(VOCABULARY)) == len(VOCABULARY) == 4096
    lengths = {len(character.encode()) for piece in VOCABULARY for character in piece}
    assert lengths == {1, 2, 3, 4}
    assert all(token_text(token) for token in reply_tokens(0, b"x", 500))


def test_the_key_is_of_the_prompt_and_not_of_the_sampling():
    asked = {"messages": [{"role": "user", "content": "Hello"}]}
    assert prompt_key({**asked, "max_tokens": 3}) == prompt_key({**asked, "temperature": 0})
    assert prompt_key(asked) != prompt_key({"messages": [{"role": "user", "content": "Hello!"}]})


def test_prompt_length():
    assert prompt_length({"prompt": [5, 6, 7]}) == 3
    assert prompt_length({"prompt": "x" * 400}) == 100
