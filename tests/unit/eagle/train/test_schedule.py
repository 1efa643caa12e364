"""The learning rate rises, falls, and is never nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.train.schedule import learning_rate


def test_linear_up_and_down():
    rates = [learning_rate(step, 10, 1.0, 0.2) for step in range(10)]
    assert rates == pytest.approx([1 / 2, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@given(st.integers(1, 500), st.floats(0, 1))
def test_between_nothing_and_the_peak(steps: int, warmup: float):
    rates = [learning_rate(step, steps, 0.5, warmup) for step in range(steps)]
    assert all(0 < rate <= 0.5 for rate in rates)
    peak = rates.index(max(rates))
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
