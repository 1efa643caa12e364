"""What a drafted step is charged, by what was believed of it and what it took."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.guard.charge import MOST, Charge

BELIEVED = 1.3


def charged(*took: float, believed: float = BELIEVED) -> list[float]:
    charge = Charge()
    return [charge.of(believed, one) for one in took]


def test_of_a_slowdown_the_first_step_alone_is_charged_too_little():
    slow = 3 * BELIEVED
    found = charged(BELIEVED, slow, slow, slow, BELIEVED)
    assert found == pytest.approx([BELIEVED, BELIEVED, slow, slow, BELIEVED])


def test_of_two_that_differ_the_smaller_difference_counts():
    assert charged(5.0, 2.6, 4.0) == pytest.approx([BELIEVED, 2.6, 2.6])


def test_a_stall_is_not_charged_nor_is_noise():
    assert charged(26.0, 1.4, 1.2, 26.0, 1.45, 1.45, 1.1, 1.1) == [BELIEVED] * 8


def test_a_clock_that_jumps_twice_is_bounded():
    assert charged(1e6, 1e6) == pytest.approx([BELIEVED, MOST * BELIEVED])
    assert charged(1e-9, 1e-9, believed=8.0) == pytest.approx([8.0, 8.0 / MOST])


def test_a_cost_that_was_believed_too_high_is_put_right_but_no_step_takes_less_than_a_plain_one():
    assert charged(1.5, 1.5, believed=4.0) == pytest.approx([4.0, 1.5])
    assert charged(0.5, 0.5) == [BELIEVED, 1.0]


@given(st.lists(st.tuples(st.floats(1.0, 50.0), st.floats(1e-9, 1e9)), max_size=30))
def test_it_is_never_far_from_what_was_believed(steps: list[tuple[float, float]]):
    charge = Charge()
    for believed, took in steps:
        found = charge.of(believed, took)
        assert max(believed / MOST, 1.0) * (1 - 1e-9) <= found <= believed * MOST * (1 + 1e-9)
