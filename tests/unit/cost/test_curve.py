"""The curve through measured points: exact where it rises, level where it falls, open beyond its end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.calibrate import CONCURRENCIES
from breakeven.cost.curve import LEAST_ERROR, MOST_CONCURRENCY, Z_95, Curve, CurvePoint
from breakeven.errors import UsageError

DENSE_ON_A_CPU = {1: 29.6, 2: 34.5, 3: 27.9, 4: 28.3, 6: 29.7, 8: 37.5}
"""Step ms of a dense model by sequences, as vLLM took them on a CPU: two real bumps."""


def point(concurrency: int, step_ms: float, spread: float = 0.02) -> CurvePoint:
    """One whose interval is `spread` of it to either side."""
    step_s = step_ms / 1e3
    return CurvePoint(concurrency, step_s, step_s * (1 - spread), step_s * (1 + spread), 20)


def curve(steps_ms: dict[int, float], spread: float = 0.02) -> Curve:
    return Curve(tuple(point(c, ms, spread) for c, ms in steps_ms.items()))


def test_a_rising_curve_goes_through_its_points_and_is_linear_between():
    rising = curve({1: 10, 2: 12, 4: 13, 8: 21})
    assert rising.step_seconds(2) == pytest.approx((0.012, 0.01176, 0.01224))
    assert rising.step_seconds(3) == pytest.approx((0.0125, 0.01225, 0.01275))
    assert rising.step_seconds(6)[0] == pytest.approx(0.017)
    assert rising.falls() == () and rising.warnings() == () and rising.warning(8) is None


def test_points_may_come_in_any_order():
    assert curve({4: 13, 1: 10, 2: 12}) == curve({1: 10, 2: 12, 4: 13})


def test_beyond_the_last_point_the_interval_opens():
    rising = curve({1: 10, 2: 12, 4: 13, 8: 21})
    widths = []
    for tokens in (8, 10, 20, 40):
        step_s, low_s, high_s = rising.step_seconds(tokens)
        assert step_s == pytest.approx(0.021 + 0.002 * (tokens - 8))
        assert low_s < step_s < high_s
        widths.append((high_s - low_s) / step_s)
    assert all(a < b for a, b in pairwise(widths))
    said = rising.warning(20) or ""
    assert "beyond the last measured point (8)" in said and "--max-concurrency 20" in said


def test_no_point_is_advised_that_calibration_does_not_reach():
    said = curve({1: 10, 2: 12, 4: 13}).warning(5000) or ""
    assert said.endswith("type  breakeven calibrate URL --max-concurrency 256")
    whole = curve({1: 10, 2: 12, MOST_CONCURRENCY: 100})
    assert (whole.warning(5000) or "").endswith("with a growing error") and whole.warning(256) is None
    assert CONCURRENCIES[-1] == MOST_CONCURRENCY


def test_beyond_a_level_end_the_line_through_all_points_is_allowed_for():
    level = curve({1: 10, 2: 14, 4: 18, 8: 17.9}, spread=0.0)
    step_s, low_s, high_s = level.step_seconds(16)
    assert step_s == pytest.approx(level.step_seconds(8)[0])
    assert high_s >= level.step_seconds(8)[2] + level.line.b_s * 8
    assert low_s == pytest.approx(level.step_seconds(8)[1])


def test_a_fall_is_level_with_an_error_that_covers_both_and_is_said():
    bumped = curve({1: 10, 2: 20, 3: 12, 4: 30}, spread=0.01)
    (step_2, low_2, high_2), (step_3, low_3, high_3) = bumped.step_seconds(2), bumped.step_seconds(3)
    assert step_2 == step_3 and 0.012 < step_2 < 0.020
    assert low_3 < 0.012 and high_3 > step_3 and low_2 < step_2 and high_2 > 0.020
    (said,) = bumped.warnings()
    assert "not monotone" in said and "20 ms with 2" in said and "more than their intervals explain" in said


def test_a_doubtful_point_widens_itself_and_not_its_neighbours():
    points = (point(1, 19.9), point(2, 20.1, 0.01), point(4, 20.0, 0.8), point(8, 20.05, 0.01))
    doubtful = Curve(points)
    assert doubtful.step_seconds(4)[2] > 0.030
    assert doubtful.step_seconds(2)[2] < 0.0205 and doubtful.step_seconds(8)[2] < 0.0205


def test_a_fall_within_the_intervals_is_said_to_be_no_more():
    (said,) = curve({1: 10, 2: 10.1, 3: 10.05, 4: 10.01}).warnings()
    assert "from 2 to 3, 3 to 4" in said and "their intervals explain it" in said


def test_the_bumps_of_a_real_kernel_are_named_and_covered():
    dense = curve(DENSE_ON_A_CPU)
    assert any("2 in flight and 27.9 ms with 3" in said for said in dense.warnings())
    for tokens, ms in DENSE_ON_A_CPU.items():
        step_s, low_s, high_s = dense.step_seconds(tokens)
        assert low_s <= step_s <= high_s and low_s <= ms / 1e3 <= high_s


@given(
    st.lists(st.floats(1.0, 100.0), min_size=3, max_size=8),
    st.lists(st.floats(0.0, 0.3), min_size=8, max_size=8),
)
def test_it_is_the_isotonic_regression(steps_ms: list[float], spreads: list[float]):
    """Against the max-min formula (Robertson, Wright & Dykstra 1988): max over a ≤ i of min over b ≥ i of the
    weighted mean of a … b.
    """
    points = tuple(point(c + 1, ms, spreads[c]) for c, ms in enumerate(steps_ms))
    values = np.array([one.step_s for one in points])
    half_widths = np.array([one.high_s - one.low_s for one in points]) / 2
    weights = np.maximum(half_widths / Z_95, LEAST_ERROR * values) ** -2.0
    n = len(values)
    expected = [
        max(
            min(np.average(values[a : b + 1], weights=weights[a : b + 1]) for b in range(i, n))
            for a in range(i + 1)
        )
        for i in range(n)
    ]
    knots = Curve(points).knots
    assert [knot.step_s for knot in knots] == pytest.approx(expected)
    assert all(knot.low_s <= knot.step_s <= knot.high_s for knot in knots)


def test_a_straight_line_is_found_with_no_residual():
    line = curve({c: 5 + 0.25 * c for c in (1, 2, 4, 8, 16)}).line
    assert (line.a_s, line.b_s, line.residual) == pytest.approx((0.005, 0.00025, 0))


def test_the_line_says_where_it_is_worst():
    line = curve({1: 10, 2: 10, 3: 10, 4: 15, 6: 10, 8: 10}).line
    assert line.worst_at == 4 and line.worst < -0.2 and line.residual > 0.05


def test_relative_to_a_plain_step_both_errors_count():
    rising = curve({1: 10, 2: 12, 4: 13})
    assert rising.relative(1) == (1, 1, 1)
    error = 0.02 * 2**0.5
    assert rising.relative(2) == pytest.approx((1.2, 1.2 * (1 - error), 1.2 * (1 + error)))


def test_relative_to_any_step_shared_errors_cancel():
    rising = curve({1: 10, 2: 12, 4: 16})
    error = 0.02 * 2**0.5
    assert rising.relative(4, 2) == pytest.approx((4 / 3, 4 / 3 * (1 - error), 4 / 3 * (1 + error)))
    ratio, low, high = rising.relative(1.01, 1)
    assert ratio == pytest.approx(1.002)
    assert high - low == pytest.approx(2 * 0.01 * 1.2 * error)
    ratio, low, high = rising.relative(16, 12)
    assert ratio == pytest.approx(40 / 32)
    (_, low_16, high_16), (_, low_12, high_12) = rising.step_seconds(16), rising.step_seconds(12)
    assert low_16 / high_12 < low < ratio < high < high_16 / low_12


@given(
    st.lists(st.floats(1.0, 100.0), min_size=3, max_size=8),
    st.floats(0.0, 0.3),
    st.floats(1, 40),
    st.floats(1, 40),
)
def test_relative_is_a_ratio_in_its_interval(
    steps_ms: list[float], spread: float, tokens: float, base: float
):
    found = Curve(tuple(point(c + 1, ms, spread) for c, ms in enumerate(steps_ms)))
    ratio, low, high = found.relative(tokens, base)
    assert ratio == pytest.approx(found.step_seconds(tokens)[0] / found.step_seconds(base)[0])
    assert 0 <= low <= ratio <= high
    assert (low if tokens > base else 1 / high) >= 1 - 1e-12
    assert found.relative(tokens, tokens) == (1, 1, 1)


@pytest.mark.parametrize(
    ("steps_ms", "said"),
    [
        ({}, "0 measured points cannot show a curve"),
        ({1: 10}, "1 measured point cannot show a curve"),
        ({1: 10, 2: 11}, "--max-concurrency 4"),
        ({2: 10, 3: 11, 4: 12}, "no point at concurrency 1, its first is 2"),
    ],
)
def test_too_little_is_refused(steps_ms: dict[int, float], said: str):
    with pytest.raises(UsageError, match=said):
        curve(steps_ms)


def test_one_concurrency_twice_is_refused():
    with pytest.raises(UsageError, match="two points at concurrency 2"):
        Curve((point(1, 10), point(2, 11), point(2, 12)))


@pytest.mark.parametrize("tokens", [0, 0.5, -1, float("nan")])
def test_a_step_has_a_token(tokens: float):
    with pytest.raises(UsageError, match="at least one token"):
        curve({1: 10, 2: 11, 3: 12}).step_seconds(tokens)
