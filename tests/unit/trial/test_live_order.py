"""In which order repeats are asked, and that both sides stay balanced wherever the candidate may stop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.trial.live_order import ORDERS, Order, before, once, planned, whole_repeats
from tests.unit.trace.builders import trace


@pytest.mark.parametrize(
    ("order", "repeats", "first", "starts", "after"),
    [
        ("AB", 4, (0, 1, 2, 3), ((0, 1, 2, 3),), (4,)),
        ("ABA", 4, (0, 1), ((0, 2, 1, 3),), (2, 3)),
        ("ABBA", 4, (0, 1), ((0, 2), (1, 3)), (2, 3)),
        ("ABA", 5, (0, 1, 2), ((0, 3, 1, 4, 2),), (3, 4)),
        ("ABBA", 3, (0, 1), ((0, 2), (1,)), (2,)),
        ("ABA", 1, (0,), ((0,),), (1,)),
        ("ABBA", 1, (0,), ((0,),), (1,)),
    ],
)
def test_the_orders(order: Order, repeats: int, first: object, starts: object, after: object):
    asked = planned(order, repeats, before(order, repeats))
    assert (asked.before, asked.candidate) == (first, starts)
    assert asked.after([n for start in asked.candidate for n in start]) == after


@given(st.sampled_from(ORDERS), st.integers(1, 20), st.integers(1, 20))
def test_every_repeat_has_its_pair(order: Order, repeats: int, asked: int):
    found = planned(order, repeats, asked)
    candidate = [n for start in found.candidate for n in start]
    assert len(candidate) == len(set(candidate)) <= repeats
    for n in range(1, len(candidate) + 1):
        baseline = {*found.before, *found.after(candidate[:n])}
        assert set(candidate[:n]) <= baseline
        if found.is_balanced(candidate[:n]) and order != "AB" and len(candidate) > 1:
            with_before = sum(one in found.before for one in candidate[:n])
            assert 2 * with_before == n


def test_fewer_repeats_of_the_baseline_than_planned_are_all_that_is_paired():
    assert planned("ABA", 12, 2).candidate == ((0, 2, 1, 3),)
    assert planned("AB", 12, 2).candidate == ((0, 1),)


def test_a_baseline_without_a_whole_repeat_is_refused():
    with pytest.raises(UsageError, match="measure it again"):
        planned("ABA", 4, 0)


def test_once_is_once():
    asked = once(3)
    assert asked.candidate == ((0,),)
    assert asked.after([0]) == (3,)
    assert asked.is_balanced([0])


def test_whole_repeats_are_counted_from_the_first_on():
    whole = [replace(trace(n), prompt_id=f"p{i}") for n in range(3) for i in range(2)]
    assert whole_repeats(whole, 2) == 3
    assert whole_repeats(whole[:-1], 2) == 2
    assert whole_repeats(whole[1:], 2) == 0
    assert whole_repeats([], 2) == 0
