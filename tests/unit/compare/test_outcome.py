import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.compare.outcome import outcome
from breakeven.interval import Interval

CASES = [
    ((1.05, 1.01, 1.09), "faster"),
    ((1.05, 0.99, 1.12), "undecided"),
    ((1.015, 1.005, 1.03), "undecided"),
    ((1.01, 1.005, 1.015), "same"),
    ((1.0, 0.985, 1.015), "same"),
    ((1.0, 0.97, 1.015), "undecided"),
    ((0.9, 0.85, 0.95), "slower"),
    ((0.99, 0.97, 0.995), "undecided"),
]


@pytest.mark.parametrize(("interval", "expected"), CASES)
def test_outcomes(interval: tuple[float, float, float], expected: str):
    assert outcome(Interval(*interval), 0.02) == expected


@given(st.floats(-0.3, 0.3), st.floats(0, 0.3), st.floats(0, 0.3), st.sampled_from([0.0, 0.02, 0.1]))
def test_turned_over_it_says_the_opposite(centre: float, below: float, above: float, floor: float):
    there = Interval(math.exp(centre), math.exp(centre - below), math.exp(centre + above))
    back = Interval(math.exp(-centre), math.exp(-centre - above), math.exp(-centre + below))
    opposite = {"faster": "slower", "slower": "faster"}
    found = outcome(there, floor)
    assert outcome(back, floor * (1 + 1e-12)) in (opposite.get(found, found), "undecided")


@given(st.floats(-0.3, 0.3), st.floats(0, 0.3), st.floats(0, 0.3))
def test_a_direction_excludes_one_and_same_stays_within_the_floor(centre: float, below: float, above: float):
    interval = Interval(math.exp(centre), math.exp(centre - below), math.exp(centre + above))
    found = outcome(interval, 0.02)
    if found in ("faster", "slower"):
        assert not interval.low <= 1 <= interval.high
    if found == "same":
        assert interval.high <= 1.02 and interval.low >= 1 / 1.02
