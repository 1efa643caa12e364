import numpy as np
import pytest

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.measured import Measured
from breakeven.guard.curve_times import CurveTimes
from tests.unit.forecast.costs import Line


def test_a_step_by_its_tokens_with_the_plain_one_up_to_the_sequences():
    times = CurveTimes(Line(0.010, 0.001))
    assert times.seconds(4, 2) == pytest.approx([0.012, 0.012, 0.012, 0.013, 0.014])
    assert times.seconds(2) == pytest.approx([0.011, 0.011, 0.012])
    assert times.seconds(6, 2)[:5] == pytest.approx(times.seconds(4, 2))


def test_the_context_counts():
    assert CurveTimes(Line(0.010, 0.001, kv=1e-6), 500).seconds(1) == pytest.approx([0.0115, 0.0115])


def test_it_never_falls_and_cannot_be_written_to():
    found = CurveTimes(Line(0.010, -0.001)).seconds(3)
    assert found == pytest.approx([0.009] * 4)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1.0


def test_of_a_calibrations_curve():
    points = tuple(CurvePoint(n, s, s, s, 9) for n, s in ((1, 0.010), (2, 0.014), (4, 0.020)))
    found = CurveTimes(Measured(Curve(points), moe=False)).seconds(4)
    assert found == pytest.approx([0.010, 0.010, 0.014, 0.017, 0.020])


def test_it_is_known_so_that_no_probe_is_due():
    assert CurveTimes(Line()).probe(1, 10) == 0
    assert isinstance(CurveTimes(Line()).seconds(3), np.ndarray)
