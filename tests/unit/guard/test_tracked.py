"""A quantity that is told with noise, stalls, and changes for good."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.guard.tracked import LEAP, LEAST, RECENT, Tracked, middle


def test_the_first_value_is_taken_where_nothing_was_believed():
    one = Tracked(0.1, 0)
    one.tell(0.15)
    assert one.value == pytest.approx(0.15)


def test_small_differences_are_averaged():
    one, told = Tracked(0.0, 0), [0.05, -0.05, 0.1, 0.02]
    for value in told:
        assert not one.tell(value)
    assert one.value == pytest.approx(mean(told))


def test_what_is_believed_counts_as_so_many_values():
    one = Tracked(0.0, 4)
    one.tell(0.1)
    assert one.value == pytest.approx(0.02)


def test_a_stall_counts_as_no_further_away_than_a_leap():
    one = Tracked(0.0, 16)
    assert not one.tell(5.0)
    assert one.value == pytest.approx(LEAP / 16)


def test_it_leaps_up_when_most_of_the_last_agree():
    one = Tracked(0.0, 16)
    for _ in range(RECENT):
        one.tell(0.0)
    assert [one.tell(1.0) for _ in range(3)] == [False, False, True]
    assert one.value == pytest.approx(1.0)


def test_it_is_not_settled_before_enough_was_told():
    one = Tracked(0.0, 4)
    for _ in range(LEAST):
        assert not one.settled
        one.tell(0.0)
    assert one.settled


def test_after_it_forgot_one_low_value_is_believed_and_one_high_is_not():
    for value, believed in ((-1.0, True), (1.0, False)):
        one = Tracked(0.0, 16)
        for _ in range(RECENT):
            one.tell(0.0)
        one.forget()
        assert one.tell(value) == believed


def test_a_stall_at_first_does_not_hide_what_comes_next():
    one = Tracked(1.0, 0)
    one.tell(3.0)
    assert one.tell(0.1) and one.value == pytest.approx(0.1)


def test_what_was_told_last_can_be_put_right():
    one = Tracked(0.0, 16)
    for _ in range(RECENT):
        one.tell(1.0)
    one.put_right([0.1, 0.0, 0.2])
    assert one.value == pytest.approx(0.1) and one.settled


def test_the_middle_of_an_even_number_is_the_upper():
    assert middle([4.0, 1.0, 3.0]) == 3.0 and middle([4.0, 1.0, 3.0, 2.0]) == 3.0


@given(st.floats(-3, 3), st.integers(0, 4), st.lists(st.floats(-3, 3), min_size=1, max_size=40))
def test_it_stays_within_what_it_was_told_and_believed(believed: float, weight: int, told: list[float]):
    one = Tracked(believed, weight)
    for value in told:
        one.tell(value)
    assert min(believed, *told) - 1e-9 <= one.value <= max(believed, *told) + 1e-9


@pytest.mark.parametrize(("value", "faded"), ((1.0, 0.5), (0.0, 0.0), (-0.4, -0.4)))
def test_it_fades_from_above(value: float, faded: float):
    one = Tracked(value, 4)
    one.fade()
    assert one.value == faded
