"""Against printed tables and closed forms."""

import math
from itertools import pairwise

import pytest

from breakeven.compare.student import t_quantile, z_quantile

TABLE = [
    (0.025, 1, 12.7062047),
    (0.025, 2, 4.30265273),
    (0.025, 3, 3.18244631),
    (0.025, 7, 2.36462425),
    (0.025, 30, 2.04227246),
    (0.025, 120, 1.97993041),
    (0.005, 3, 5.84090931),
    (0.0005, 3, 12.9239786),
    (0.0005, 60, 3.46020047),
    (0.05, 5, 2.01504837),
]


@pytest.mark.parametrize(("tail", "dof", "value"), TABLE)
def test_tabulated(tail: float, dof: float, value: float):
    assert t_quantile(tail, dof) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("tail", [0.4, 0.1, 0.025, 1e-4, 1e-6])
def test_closed_forms_for_one_and_two_degrees(tail: float):
    assert t_quantile(tail, 1) == pytest.approx(1 / math.tan(math.pi * tail), rel=1e-8)
    u = 1 - 2 * tail
    assert t_quantile(tail, 2) == pytest.approx(u * math.sqrt(2 / (1 - u * u)), rel=1e-7)


def test_between_whole_degrees_it_falls():
    values = [t_quantile(0.025, dof / 4) for dof in range(4, 60)]
    assert all(a > b for a, b in pairwise(values))


def test_large_degrees_meet_the_normal():
    assert t_quantile(0.025, 1e7) == pytest.approx(z_quantile(0.025), rel=1e-6)
    assert z_quantile(0.025) == pytest.approx(1.95996398, rel=1e-8)
