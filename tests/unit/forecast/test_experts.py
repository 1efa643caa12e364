"""The coverage that a forecast shows is that of the reuse its cost takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.cost.anchored import Anchored
from breakeven.cost.coverage import REUSE, REUSE_RANGE, distinct_experts
from breakeven.cost.geometry import Experts
from breakeven.cost.hardware import hardware
from breakeven.cost.measured import Measured
from breakeven.cost.modelled import Modelled
from breakeven.cost.presets import preset
from breakeven.cost.step import StepCost
from breakeven.forecast.experts import coverage
from breakeven.interval import Interval
from tests.unit.cost.test_measured import LINE

QWEN3 = Modelled(preset("qwen3-30b-a3b"), hardware("h100-sxm"))
MEASURED = Interval(0.4, 0.2, 0.5)
KNOWN = replace(QWEN3, reuse=0.4, reuse_range=(0.2, 0.5))


@pytest.mark.parametrize(
    ("cost", "reuse"),
    [
        (QWEN3, Interval(REUSE, *REUSE_RANGE)),
        (replace(QWEN3, reuse=0.1), Interval(0.1, 0.1, REUSE_RANGE[1])),
        (KNOWN, MEASURED),
        (Anchored(KNOWN, 0.01), MEASURED),
        (Measured(LINE, moe=True), Interval(REUSE, *REUSE_RANGE)),
    ],
)
def test_it_is_of_the_reuse_and_of_both_its_ends(cost: StepCost, reuse: Interval):
    found = coverage(QWEN3.geometry, cost, 6)
    assert found is not None and (found.experts, found.top_k) == (128, 8)
    assert [tokens for tokens, _ in found.points] == [1, 2, 3, 4, 5, 6]

    def distinct(of: float) -> float:
        return distinct_experts(Experts(128, 8, 1), 6, reuse=of)

    expected = Interval(distinct(reuse.estimate), distinct(reuse.high), distinct(reuse.low))
    assert found.points[-1][1] == expected


def test_a_trace_of_routing_takes_the_place_of_what_a_cost_takes():
    given = coverage(QWEN3.geometry, Measured(LINE, moe=True), 6, MEASURED)
    assert given == coverage(QWEN3.geometry, KNOWN, 6)


def test_there_is_none_without_experts():
    dense = replace(QWEN3, geometry=preset("llama-3.1-8b"))
    assert coverage(dense.geometry, dense, 6) is None and coverage(None, dense, 6) is None
