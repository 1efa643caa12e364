import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.interval import Interval
from breakeven.report.curves import Chart, Points, chart, spread
from breakeven.report.svg import Linear, Log


def exactly(value: float) -> Interval:
    return Interval(value, value, value)


def points(*values: tuple[float, Interval], bound: bool = False, name: str = "a") -> Points:
    return Points(name, values, tuple(f"at {x:g}" for x, _ in values), bound)


def drawn(*lines: Points, up: Linear | Log = Linear(0, 10)) -> Chart:  # noqa: B008
    return chart("x", Linear(0, 100), up, lines, [(5, "half")], "words")


def test_lines_dots_and_levels_lie_where_their_values_say():
    made = drawn(points((0, exactly(0)), (50, exactly(5)), (100, exactly(10))))
    (one,) = made.lines
    assert one.path == "M0.0 1000.0L500.0 500.0L1000.0 0.0"
    assert [(dot.x, dot.y, dot.text) for dot in one.dots][:2] == [(0, 100, "at 0"), (50, 50, "at 50")]
    assert [(level.y, level.label) for level in made.levels] == [(50, "half")]
    assert [(tick.position, tick.label) for tick in made.across] == [(0, "0"), (50, "50"), (100, "100")]
    assert one.band == "" and one.whiskers == ()


def test_a_band_goes_there_along_the_highs_and_back_along_the_lows():
    (one,) = drawn(points((0, Interval(2, 1, 3)), (100, Interval(6, 5, 8)))).lines
    assert one.band == "M0.0 700.0L1000.0 200.0L1000.0 500.0L0.0 900.0Z"


def test_a_single_point_has_a_whisker_in_place_of_a_band():
    (one,) = drawn(points((50, Interval(2, 1, 3)))).lines
    assert one.band == "" and one.whiskers == ((50, 90, 70),)
    assert len(one.dots) == 1


@pytest.mark.parametrize(
    ("up", "values", "leaves"),
    [(Linear(0, 10), (5, 15), 500.0), (Log(1, 4), (2, 8), 500.0), (Log(1, 4), (2, 16), 333.3)],
)
def test_a_bound_is_cut_where_it_leaves_the_plot(up: Linear | Log, values: tuple[int, int], leaves: float):
    line = points((0, exactly(values[0])), (100, exactly(values[1])), bound=True)
    (one,) = drawn(line, up=up).lines
    assert one.dashed and one.path == f"M0.0 500.0L{leaves} 0.0"
    assert [dot.text for dot in one.dots] == ["at 0"]


def test_a_bound_that_lies_above_the_plot_is_not_drawn():
    (one,) = drawn(points((0, exactly(11)), (100, exactly(15)), bound=True)).lines
    assert one.path == "" and one.dots == ()


def test_the_ninth_line_is_told_from_the_first():
    lines = [points((0, exactly(place)), name=f"{place}") for place in range(9)]
    made = drawn(*lines).lines
    assert len({(line.colour, line.hollow) for line in made}) == 9
    assert [line.label for line in made] == [*"123456789"]


def test_a_bound_of_0_or_without_end_can_be_drawn_on_a_log_axis():
    (one,) = drawn(points((0, Interval(1, 0, float("inf"))), (100, exactly(1))), up=Log(0.5, 2)).lines
    assert all(abs(float(number)) <= 2000 for number in re.findall(r"[\d.-]+", one.band))


def test_ticks_that_would_touch_are_left_out():
    made = drawn(points(*((x, exactly(1)) for x in (0, 1, 2, 50, 51, 100))))
    assert [tick.label for tick in made.across] == ["0", "50", "100"]


def test_labels_at_the_end_of_lines_do_not_touch():
    made = drawn(*(points((100, exactly(value))) for value in (5, 5.1, 5)), points((50, exactly(5)))).lines
    ys = sorted(line.end[1] for line in made[:3])
    assert ys[1] - ys[0] >= 5.5 - 1e-9 and ys[2] - ys[1] >= 5.5 - 1e-9
    assert made[3].end == (50, 50)


@given(st.lists(st.floats(0, 100), max_size=15))
def test_spread_keeps_the_order_and_the_gap_and_stays_above_the_foot(positions: list[float]):
    found = spread(positions, 5)
    order = sorted(range(len(positions)), key=lambda place: positions[place])
    placed = [found[place] for place in order]
    assert all(b - a >= 5 - 1e-9 for a, b in pairwise(placed))
    assert all(y <= 100 + 1e-9 for y in placed)
