"""Acceptance by position from an acceptance length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.forecast.chain import chain_acceptance


@given(st.integers(1, 16), st.floats(0, 1))
def test_the_positions_add_up_to_the_length_and_never_rise(k: int, share: float):
    length = 1 + share * k
    rates = chain_acceptance(length, k)
    assert 1 + sum(rates) == pytest.approx(length, abs=1e-9)
    assert len(rates) == k and all(0 <= rate <= 1 for rate in rates)
    assert list(rates) == sorted(rates, reverse=True)


def test_one_probability_for_every_token():
    first, second, third = chain_acceptance(1 + 0.7 + 0.49 + 0.343, 3)
    assert (first, second, third) == pytest.approx((0.7, 0.49, 0.343))


@pytest.mark.parametrize("length", [0.9, 4.1, float("nan")])
def test_what_no_chain_of_three_has(length: float):
    with pytest.raises(UsageError, match="gives 1 to 4 tokens"):
        chain_acceptance(length, 3)
