"""Loops at the end of a reply: found with their period and length, and nothing else taken for one."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.compare.degenerate import Loop, is_checked, is_degenerate, loop_of, reach
from tests.cases.builders import prose, reply

TABLE = "| name | n |\n|---|---|\n" + "| none | 0 |\n" * 30
INDENTED = "def f():\n" + "    " * 40 + "return 1\n"
REFRAIN = "la la la, la la la, " * 20


def cut(
    text: str = "", ids: tuple[int, ...] | None = None, finish_reason: str | None = "length"
) -> Loop | None:
    return loop_of(reply(text=text, ids=ids, finish_reason=finish_reason))


def test_two_tokens_that_alternate() -> None:
    assert cut(ids=(*range(100, 180), *(7, 8) * 40)) == Loop(2, 80, 160)
    assert cut(ids=(*range(100, 180), *(7, 8) * 40, 7)) == Loop(2, 81, 161)


def test_text_counts_where_no_ids_are_kept() -> None:
    found = cut(prose(1, 100) + " no, yes, no," * 40)
    assert found and found.period == len(" no, yes, no,") and found.length >= 40 * found.period


def test_the_shortest_period_is_told() -> None:
    found = cut(ids=(5, 6, 5, 6) * 30)
    assert found == Loop(2, 120, 120) and found.share == 1.0


@pytest.mark.parametrize("ending", ["stop", "length", None])
@pytest.mark.parametrize("text", [TABLE, REFRAIN], ids=["table", "refrain"])
def test_it_is_a_loop_however_the_reply_ends(text: str, ending: str | None) -> None:
    assert cut(text, finish_reason=ending) is not None
    assert is_degenerate(reply(text=text, finish_reason=ending))


def test_the_id_that_closes_a_loop_is_not_of_it() -> None:
    assert cut(ids=(*range(100, 180), *(7, 8) * 40, 2), finish_reason="stop") == Loop(2, 80, 161)


@pytest.mark.parametrize("text", [INDENTED, prose(2, 400), "", "yes", TABLE[:90] + prose(3, 60)])
def test_what_does_not_end_in_repetition_is_no_loop_when_it_is_cut(text: str) -> None:
    assert cut(text) is None


def test_a_loop_that_was_left_is_none() -> None:
    assert cut(ids=(*(7, 8) * 100, *range(100, 200))) is None


def test_replies_without_text_are_not_checked() -> None:
    assert not is_checked(reply(text=""))
    assert is_checked(reply(text="yes")) and is_checked(reply(text="", ids=(1,)))


def test_a_period_in_characters_is_about_a_quarter_as_many_tokens() -> None:
    found = cut(prose(1, 100) + " no, yes, no," * 40)
    assert found and (found.period, found.period_tokens) == (13, 3)
    short = cut("ab" * 400)
    assert short and short.period_tokens == 1, "none is of less than a token"
    ids = cut(ids=(5, 6, 7) * 40)
    assert ids and ids.period_tokens == 3


@given(
    st.lists(st.integers(1000, 9000), max_size=200),
    st.lists(st.integers(0, 500), min_size=1, max_size=64, unique=True),
    st.integers(0, 63),
)
def test_planted_loops_come_with_their_period_and_length(
    before: list[int], period: list[int], cut_short: int
) -> None:
    """The tokens before share none with the period, whose tokens all differ."""
    length = max(4 * len(period), 64) + cut_short % len(period)
    found = cut(ids=tuple(before + list(islice(cycle(period), length))))
    assert found == Loop(len(period), length, len(before) + length)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60), st.integers(1, 60))
def test_the_reach_is_the_longest_end_with_this_period(tokens: list[int], period: int) -> None:
    period = min(period, len(tokens))
    n = len(tokens)
    fits = [
        length
        for length in range(period, n + 1)
        if all(tokens[i] == tokens[i - period] for i in range(n - length + period, n))
    ]
    assert reach(tokens, period) == max(fits)
