"""Held-out conversations: chosen by a hash, so that a few more move no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.data.split import held_out

MANY = [f"{number:024x}" for number in range(4000)]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_about_the_share_is_held_out(share: float) -> None:
    """Six standard deviations of a binomial count."""
    apart = held_out(MANY, share, 0)
    assert abs(len(apart) - share * len(MANY)) < 6 * (len(MANY) * share * (1 - share)) ** 0.5


def test_the_seed_chooses_others() -> None:
    assert held_out(MANY, 0.2, 0) == held_out(MANY, 0.2, 0) != held_out(MANY, 0.2, 1)


def test_a_larger_share_only_adds() -> None:
    assert held_out(MANY, 0.1, 3) < held_out(MANY, 0.3, 3)


@given(st.sets(st.sampled_from(MANY), min_size=40), st.sets(st.sampled_from(MANY), max_size=40))
def test_more_conversations_move_none(some: set[str], more: set[str]) -> None:
    everywhere = held_out(MANY, 0.25, 7)
    if some & everywhere:
        assert held_out(some, 0.25, 7) == some & everywhere
        assert held_out(some | more, 0.25, 7) == (some | more) & everywhere


@given(st.lists(st.sampled_from(MANY[:9])), st.sampled_from([0.001, 0.05, 0.5]), st.integers(0, 99))
def test_both_sides_have_some_if_there_are_two(openings: list[str], share: float, seed: int) -> None:
    apart = held_out(openings, share, seed)
    distinct = set(openings)
    assert apart <= distinct
    if len(distinct) < 2:
        assert not apart
    else:
        assert apart and apart < distinct


def test_no_share_holds_none_out() -> None:
    assert held_out(MANY, 0.0, 0) == frozenset()
