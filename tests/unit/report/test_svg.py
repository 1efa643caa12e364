import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.report.svg import Linear, Log, bars_path, ecdf_path, nice_step, padded, padded_ratio

RATIO = st.floats(0.01, 100)
NUMBER = st.floats(-1e6, 1e6)


def test_linear_ends_and_middle():
    scale = Linear(10, 20)
    assert (scale(10), scale(15), scale(20)) == (0, 50, 100)


def test_a_span_of_nothing_is_in_the_middle():
    assert Linear(3, 3)(3) == 50
    assert Log(1, 1)(1) == 50


def test_log_gives_equal_ratios_equal_distances():
    scale = Log(0.5, 2)
    assert scale(1) == pytest.approx(50)
    assert scale(2**0.5) - scale(1) == pytest.approx(scale(1) - scale(2**-0.5))


def test_wild_values_stay_near_the_box():
    assert -100 <= Linear(0, 1)(-1e12) < 0
    assert 100 < Log(0.9, 1.1)(1e9) <= 200


@pytest.mark.parametrize(
    ("raw", "step"), [(0.3, 0.5), (1, 1), (1.01, 2), (7, 10), (0.011, 0.02), (0, 1), (math.inf, 1)]
)
def test_nice_step(raw: float, step: float):
    assert nice_step(raw) == pytest.approx(step)


def test_linear_ticks_are_round_and_inside():
    assert [tick.label for tick in Linear(0.13, 2.4).ticks(5)] == ["0.5", "1.0", "1.5", "2.0"]
    assert [tick.label for tick in Linear(0, 8).ticks(4)] == ["0", "2", "4", "6", "8"]


def test_log_ticks_hold_one():
    labels = [tick.label for tick in Log(0.94, 1.07).ticks()]
    assert labels == ["0.94×", "0.96×", "0.98×", "1.0×", "1.02×", "1.04×", "1.06×"]
    assert [tick.label for tick in Log(0.4, 9).ticks()] == ["0.5×", "1.0×", "2.0×", "4.0×", "8.0×"]


@given(NUMBER, st.floats(0.001, 1e6), st.integers(1, 12))
def test_linear_ticks_are_few_and_in_order(low: float, span: float, about: int):
    ticks = Linear(low, low + span).ticks(about)
    positions = [tick.position for tick in ticks]
    assert len(ticks) <= about + 1
    assert positions == sorted(positions)
    assert all(-0.01 <= position <= 100.01 for position in positions)


@given(RATIO, st.floats(1.001, 1e6))
def test_log_ticks_are_few_distinct_and_inside(low: float, span: float):
    ticks = Log(low, low * span).ticks()
    assert 0 < len(ticks) <= 12 or span < 2
    assert all(-0.01 <= tick.position <= 100.01 for tick in ticks)


@given(st.lists(NUMBER, min_size=1))
def test_padded_holds_every_value(values: list[float]):
    low, high = padded(values)
    assert low < min(values) and max(values) < high


@given(st.lists(RATIO, min_size=1))
def test_padded_ratio_holds_every_value_and_stays_positive(values: list[float]):
    low, high = padded_ratio(values)
    assert 0 < low < min(values) and max(values) < high


def test_ecdf_rises_by_one_share_per_value():
    assert ecdf_path([2, 1], Linear(0, 4)) == "M0 1000H250V500H500V0H1000"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=3000))
def test_ecdf_rises_to_the_top_and_stays_short(values: list[float]):
    path = ecdf_path(values, Linear(0, 1))
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == 0
    assert len(heights) <= 1000


def test_bars_stand_on_the_floor():
    assert bars_path([(0, 1), (5, 2)], Linear(0, 10), Linear(0, 2)) == "M0 1000V500M500 1000V0"
