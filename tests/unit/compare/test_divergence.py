import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.compare.divergence import diverge, lossless
from breakeven.compare.pairs import replies
from tests.cases.builders import reply, run


def sides(a, b):
    return replies(a, "baseline"), replies(b, "candidate")


def test_identical_greedy_replies():
    found = lossless(*sides(run(), run(seed=1)), 0.0)
    assert (found.identical, found.compared, found.first_divergence, found.reason) == (24, 24, None, None)


@pytest.mark.parametrize(("temperature", "word"), [(None, "server"), (0.7, "0.7")])
def test_sampled_replies_are_not_compared(temperature: float | None, word: str):
    found = lossless(*sides(run(), run()), temperature)
    assert (found.identical, found.compared) == (0, 0)
    assert found.reason is not None and word in found.reason


def test_failed_requests_are_not_compared():
    found = lossless(*sides([reply()], [reply(error="cut off")]), 0)
    assert found.compared == 0 and found.reason


def test_the_earliest_of_all_is_reported():
    a = [reply("a", text="one two"), reply("b", text="one two"), reply("c", text="same")]
    b = [reply("a", text="one ten"), reply("b", text="one two three"), reply("c", text="same")]
    found = lossless(*sides(a, b), 0)
    assert (found.identical, found.compared) == (1, 3)
    assert found.first_divergence is not None
    assert (found.first_divergence.prompt_id, found.first_divergence.position) == ("a", 5)


def test_tokens_are_compared_when_both_sides_have_them():
    a, b = reply(text="abc", ids=(1, 2, 3)), reply(text="abd", ids=(1, 2, 4))
    found = diverge(a, b)
    assert found is not None and (found.unit, found.position) == ("token", 2)
    found = diverge(a, reply(text="abd"))
    assert found is not None and (found.unit, found.position) == ("character", 2)


def test_reasoning_is_part_of_the_reply():
    found = diverge(reply(text="4", reasoning="2+2"), reply(text="4", reasoning="2 plus 2"))
    assert found is not None and found.position == 1


@given(st.text(max_size=30), st.text(max_size=30))
def test_position_is_the_length_of_the_common_start(a: str, b: str):
    found = diverge(reply(text=a), reply(text=b))
    if found is None:
        assert a == b
    else:
        assert a[: found.position] == b[: found.position]
        assert a[found.position : found.position + 1] != b[found.position : found.position + 1]
