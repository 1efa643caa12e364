"""Sizes between those told, against their definitions size by size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.guard.told_sizes import ToldSizes

LAST = 24
TOLD = st.dictionaries(st.integers(1, LAST), st.floats(-2.0, 2.0), max_size=8)
SLOPES = st.lists(st.floats(0.0, 0.3), min_size=LAST, max_size=LAST)


def sizes_told(told: dict[int, float], slopes: list[float], margin: float) -> tuple[ToldSizes, list[float]]:
    curve = [0.0, 0.0, *np.cumsum(slopes[1:]).tolist()]
    sizes = ToldSizes(np.array(curve), np.array(curve) + margin)
    for size, correction in told.items():
        sizes.begin(size, correction, 4)
    return sizes, curve


@given(TOLD, SLOPES, st.floats(0.0, 0.5), st.floats(-1.0, 1.0))
def test_at_most_is_what_neighbours_allow(
    told: dict[int, float], slopes: list[float], margin: float, least: float
):
    sizes, curve = sizes_told(told, slopes, margin)
    found = sizes.at_most(least)
    for size in range(1, LAST + 1):
        below = max((one for one in told if one <= size), default=None)
        above = min((one for one in told if one >= size), default=None)
        near = [least if below is None else told[below]]
        if above is not None:
            near.append(told[above])
        expected = curve[size] + max(near) + margin
        if above is not None:
            expected = min(expected, curve[above] + told[above])
        if size in told:
            expected = curve[size] + told[size]
        assert found[size] == pytest.approx(expected)


@given(TOLD, SLOPES)
def test_between_is_linear_in_the_correction(told: dict[int, float], slopes: list[float]):
    sizes, curve = sizes_told(told, slopes, 0.0)
    found = sizes.between()
    for size in range(LAST + 1):
        below = max((one for one in told if one <= size), default=min(told, default=0))
        above = min((one for one in told if one >= size), default=max(told, default=0))
        share = 0.0 if above == below else (size - below) / (above - below)
        correction = (1 - share) * told.get(below, 0.0) + share * told.get(above, 0.0)
        assert found[size] == pytest.approx(curve[size] + correction)


@given(TOLD, st.integers(1, LAST))
def test_a_size_lies_between_settled_ones(told: dict[int, float], size: int):
    sizes, _ = sizes_told(told, [0.1] * LAST, 0.0)
    for one in told:
        for _ in range(3):
            sizes.tell(one, told[one])
    assert sizes.lies_between(size) == bool(told and min(told) <= size <= max(told))
    assert len(sizes) == len(told) and sizes.settled(size) == (size in told) == sizes.knows(size)
