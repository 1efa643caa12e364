"""Steps that cost more than their tokens account for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.acceptance.load import Load
from breakeven.cost.presets import preset
from breakeven.diagnose.causes.step_cost import CAUSES, compute_bound, step_cost
from breakeven.diagnose.evidence import Drafting, Evidence, Traffic
from breakeven.explain.records import Observation
from tests.unit.diagnose.compared import DENSE, compared, counted, explained, uncosted
from tests.unit.diagnose.healthy import LOAD, healthy
from tests.unit.explain.cases import calibrated, kimi
from tests.unit.forecast.costs import Line

MTP = Drafting("mtp", 1)
LONG = calibrated(False, {1: 13.0, 2: 14.0, 4: 16.0, 8: 20.0})


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence",
    [Evidence(), healthy(), compared(2.0), compared(1.9), uncosted(1.9, counted((0.9,)), drafting=MTP)],
    ids=["nothing known", "no speeds", "as predicted", "a little less", "no cost"],
)
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


def test_what_no_measured_cost_explains() -> None:
    """By the counts a step gives 2.33 tokens, by the curve it takes 1.14 plain steps; it took 2.12."""
    found = step_cost(compared(1.1))
    assert found and found.confidence == "high" and "measured cost" in found.title
    assert found.step_s and found.step_s[0] == pytest.approx(0.0121, abs=0.0002)
    assert f"{found.step_s[0] * 1e3:.1f} ms (chat, " in found.evidence


def test_faster_than_the_baseline_and_slower_than_it_should_be() -> None:
    assert step_cost(compared(1.5)) is not None


def test_a_model_that_may_err_is_less_sure_than_a_measurement() -> None:
    found = step_cost(explained(kimi()))
    assert found and found.confidence == "high", "coding lost more than any error of the model"
    mild = Observation("mild", 0.0126, 0.0099, (0.24, 0.24), (1.0, 1.0))
    found = step_cost(explained(kimi(observations=(mild,))))
    assert found and found.confidence == "medium"


def test_good_acceptance_and_slower_is_step_cost() -> None:
    """Without any cost: two tokens cannot take longer than two plain steps."""
    found = step_cost(uncosted(0.5, counted((0.9,)), drafting=MTP))
    assert found and found.confidence == "high" and "3.80 plain steps" in found.title
    assert "90.0 %" in found.evidence and "not the acceptance" in found.evidence


@pytest.mark.parametrize(
    ("rates", "confidence"), [((0.8, 0.7, 0.6, 0.5), "medium"), ((0.2, 0.1, 0.05, 0.05), None)]
)
def test_poor_acceptance_and_slower_is_not_laid_at_the_step(
    rates: tuple[float, ...], confidence: str | None
) -> None:
    """Within what its tokens could take one after another, only good acceptance rules itself out."""
    found = step_cost(uncosted(0.9, counted(rates)))
    assert (found and found.confidence) == confidence


def test_a_step_above_the_curve_without_an_explanation() -> None:
    found = step_cost(replace(uncosted(0.9, counted((0.4, 0.2))), cost=DENSE))
    assert found and found.confidence == "high" and "by the measured cost: 1." in found.evidence


@pytest.mark.parametrize(("step_s", "there"), [(0.0150, False), (0.0300, True)])
def test_the_servers_own_step_time_beside_the_curve(step_s: float, there: bool) -> None:
    load: Load = replace(LOAD, token_s=(1000 * step_s, 1000))
    found = step_cost(healthy(cost=DENSE, traffic=Traffic(load)))
    assert (found is not None) == there
    if found:
        assert "the server counts 30.0 ms a step" in found.evidence and found.confidence == "medium"


STEEP = calibrated(False, {1: 13.0, 2: 13.4, 4: 14.0, 8: 16.0, 16: 26.0, 32: 50.0, 64: 98.0, 128: 196.0})


@pytest.mark.parametrize(("sequences", "there"), [(1, False), (2, False), (16, True), (32, True)])
def test_a_batch_without_room_for_drafts(sequences: int, there: bool) -> None:
    evidence = compared(0.7, counted((0.5, 0.3, 0.1, 0.1)), STEEP, sequences=sequences)
    found = compute_bound(evidence)
    assert (found is not None) == there
    if found:
        assert found.confidence == "high" and f"{sequences} sequences" in found.title


def test_a_cache_that_doubles_is_not_a_token_that_costs() -> None:
    """64 sequences whose caches take nine tenths of a step: a drafted token of each costs next to nothing."""
    cost = Line(a=0.002, b=0.00001, kv=0.02 / 64 / 4000)
    evidence = healthy(counters=counted((0.02, 0.01, 0.0, 0.0)), cost=cost, sequences=64, context_tokens=4000)
    assert compute_bound(evidence) is None
    assert compute_bound(replace(evidence, cost=Line(a=0.002, b=0.0004))) is not None


def test_poor_drafts_in_a_batch_with_room_are_not_laid_at_the_batch() -> None:
    assert compute_bound(compared(0.7, counted((0.03, 0.01, 0.0, 0.0)), STEEP, sequences=2)) is None


def test_a_step_above_the_curve_by_its_share_of_drafts() -> None:
    """A quarter of the steps verifies four tokens: 1.1 plain steps by the curve, and it took 1.4."""
    counters = counted((0.5, 0.2, 0.1, 0.0), steps=4000)
    found = step_cost(replace(uncosted(0.857, counters), cost=LONG))
    assert found and found.confidence == "high" and "1.40 plain steps" in found.title
    every = counted((0.1, 0.05, 0.03, 0.02))
    assert step_cost(replace(uncosted(0.857, every), cost=LONG)) is None


def test_a_full_batch_whose_drafts_pay_all_the_same() -> None:
    assert compute_bound(compared(1.3, counted((1.0, 1.0, 1.0, 1.0)), STEEP, sequences=16)) is None


def test_a_curve_that_is_steep_by_its_experts_is_not_the_arithmetic() -> None:
    steep = compared(0.7, counted((0.3, 0.1, 0.1, 0.1)), STEEP, sequences=16)
    case = steep.case
    assert case and compute_bound(steep)
    moe = replace(steep, case=replace(case, geometry=preset("kimi-k2.5")))
    assert compute_bound(moe) is None, "16 tokens wake a quarter of 384 experts"


def test_refused_speeds_are_not_explained() -> None:
    made = explained(kimi(refused="the runs are too short"))
    assert step_cost(made) is None
