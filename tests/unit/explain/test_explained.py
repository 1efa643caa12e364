"""The arithmetic of one observation, against its definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.explain.explained import explain_one, left_over, needed_verify_s, predicted, unexplained
from breakeven.explain.records import Observation
from breakeven.interval import Interval
from tests.unit.explain.cases import llama

SHARE = st.floats(0, 1)
BOUNDS = st.tuples(SHARE, SHARE).map(lambda pair: (min(pair), max(pair)))
MAYBE = st.none() | BOUNDS
TPOT = st.floats(1e-3, 0.1)
WITHIN = st.floats(0, 1)


def tpot_by_definition(plain: float, flat: float, verify: float, share: float, gain: float) -> float:
    """A mean step, (1 − f) plain ones and f that verify, over the tokens that it yields."""
    return ((1 - share) * (plain + flat) + share * (plain + flat + verify)) / (1 + share * gain)


@given(TPOT, TPOT, SHARE, SHARE, st.floats(0, 0.05))
def test_what_is_left_over_gives_the_speed_observed(
    plain: float, candidate: float, share: float, rate: float, verify: float
):
    one = Observation("x", plain, candidate)
    flat = left_over(one, 5, share, rate, verify)
    assert tpot_by_definition(plain, flat, verify, share, 5 * rate) == pytest.approx(candidate)


@given(TPOT, TPOT, MAYBE, MAYBE, st.tuples(st.floats(0, 0.05), st.floats(0, 0.05)), WITHIN, WITHIN, WITHIN)
def test_nothing_possible_lies_outside_the_bounds(
    plain: float,
    candidate: float,
    rates: tuple[float, float] | None,
    shares: tuple[float, float] | None,
    costs: tuple[float, float],
    x: float,
    y: float,
    z: float,
):
    low, high = sorted(costs)
    verify = Interval((low + high) / 2, low, high)
    one = Observation("x", plain, candidate, rates, shares)
    (least, _), (most, _) = unexplained(one, 5, verify)
    (a0, a1), (f0, f1) = rates or (0.0, 1.0), shares or (0.0, 1.0)
    rate, share, cost = a0 + x * (a1 - a0), f0 + y * (f1 - f0), low + z * (high - low)
    assert least - 1e-12 <= left_over(one, 5, share, rate, cost) <= most + 1e-12
    corners = [left_over(one, 5, f, a, v) for f in (f0, f1) for a in (a0, a1) for v in (low, high)]
    assert (least, most) == pytest.approx((min(corners), max(corners)))
    speedup = predicted(one, 5, verify, share).speedup
    here = plain / tpot_by_definition(plain, 0.0, cost, share, 5 * rate)
    assert speedup.low - 1e-9 <= here <= speedup.high + 1e-9
    assert speedup.low <= speedup.estimate <= speedup.high


def test_the_verification_that_would_explain_all():
    one = Observation("x", 0.010, 0.012, (0.2, 0.4))
    verify = needed_verify_s(one, 5)
    assert left_over(one, 5, 1.0, 0.2, verify) == pytest.approx(0)
    assert verify == pytest.approx(0.014)


@pytest.mark.parametrize(
    ("rates", "shares", "words"),
    [
        ((0.2, 0.4), None, "nothing was ever drafted"),
        ((0.2, 0.2), (0.5, 0.5), "50.0 % of steps drafted, 20.0 % of drafted tokens were accepted"),
        ((0.0, 0.0), None, "every step drafted, 0.0 % of drafted tokens were accepted"),
    ],
)
def test_the_least_says_what_it_assumes(
    rates: tuple[float, float], shares: tuple[float, float] | None, words: str
):
    one = explain_one(llama(seen := Observation("x", 0.010, 0.012, rates, shares)), seen)
    assert one.unexplained_at_least_when.startswith(words)


def test_nothing_known_of_acceptance_has_no_break_even():
    one = explain_one(llama(seen := Observation("x", 0.010, 0.012)), seen)
    assert one.break_even_verify is None and one.outcome == "either"


def test_counted_drafts_shorter_than_the_window_cost_and_gain_less():
    full = explain_one(llama(seen := Observation("x", 0.010, 0.009, (0.5, 0.5), (1, 1))), seen)
    half = explain_one(llama(seen := Observation("x", 0.010, 0.009, (0.5, 0.5), (1, 1), 2)), seen)
    assert half.verify_s.estimate == pytest.approx(full.verify_s.estimate / 2, rel=0.05)
    assert half.break_even_verify == (1.0, 1.0) and full.break_even_verify == (2.0, 2.0)
