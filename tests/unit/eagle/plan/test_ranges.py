"""Intervals of positive figures."""

from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.plan.ranges import exactly, product, quotient, total
from breakeven.interval import Interval

TWO, FOUR = Interval(2, 1, 3), Interval(4, 4, 8)
positive = st.floats(1e-3, 1e3)


def test_ends_meet_ends():
    assert product(TWO, FOUR) == Interval(8, 4, 24)
    assert quotient(FOUR, TWO) == Interval(2, 4 / 3, 8)
    assert total(TWO, FOUR, exactly(1)) == Interval(7, 6, 12)


@given(st.tuples(positive, positive, positive), st.tuples(positive, positive, positive))
def test_whatever_the_truth_within_is_lies_within_what_comes_out(a, b):
    one, other = (Interval(sorted(x)[1], min(x), max(x)) for x in (a, b))
    for x in a:
        for y in b:
            for value, found in (
                (x * y, product(one, other)),
                (x / y, quotient(one, other)),
                (x + y, total(one, other)),
            ):
                assert found.low <= value * (1 + 1e-12)
                assert value <= found.high * (1 + 1e-12)
