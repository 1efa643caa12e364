"""Visits: what a point is of them, and that its interval holds how the machine changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from breakeven.compare.student import t_quantile
from breakeven.cost.calibrate import CalibrationPlan
from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.stretches import point
from breakeven.cost.visits import change_between, visit_warnings, with_visit
from breakeven.workload.prompts import Prompt, Sampling, Workload
from tests.unit.cost.test_stretches import MS, trace

RUNS = 60
MOST_MISSED = 8
"""Of RUNS, where 3 are expected: more are as rare as 1 in 400."""
TOKENS = 64
SCATTER = 0.05
"""Of the steps' time from one stretch to the next."""
Load = Callable[[np.random.Generator, int], NDArray[np.float64]]


def visit(concurrency: int, step_ms: float, spread: float = 0.01, **more: object) -> CurvePoint:
    step_s = step_ms / 1e3
    fields = {"low_s": step_s / (1 + spread), "high_s": step_s * (1 + spread), "n": 10, **more}
    return CurvePoint(concurrency, step_s, **fields)  # type: ignore[arg-type]


def visited(*visits: CurvePoint) -> tuple[CurvePoint, ...]:
    points: tuple[CurvePoint, ...] = ()
    for one in visits:
        points = with_visit(points, one)
    return points


def test_a_single_visit_is_the_point():
    only = visit(4, 12.0)
    (found,) = visited(only)
    assert (found.step_s, found.low_s, found.high_s) == (only.step_s, only.low_s, only.high_s)
    assert found.visits == (only,) and change_between((found,)) is None


def test_a_point_is_the_geometric_mean_of_its_visits_and_counts_them_all():
    (found,) = visited(
        visit(2, 10.0, requests=3, context_tokens=90.0),
        visit(2, 14.4, requests=4, errors=1, context_tokens=94.0, reasons=("late",)),
    )
    assert found.step_s == pytest.approx(0.012)
    assert (found.n, found.requests, found.errors, found.context_tokens) == (20, 7, 1, 92.0)
    assert found.reasons == ("late",)


def test_one_disturbed_visit_of_three_does_not_move_the_point():
    (found,) = visited(visit(2, 10.0), visit(2, 17.0), visit(2, 10.2))
    assert found.step_s == pytest.approx(0.0102) and found.high_s > 0.017
    assert "at concurrency 2 (+70.0 %)" in visit_warnings((found,))[0]


def test_a_steady_drift_falls_on_all_points_alike():
    """In logarithms; at even times."""
    levels = (1, 2, 4, 8)
    visits = [visit(c, (10 + c) * math.exp(0.05 * i)) for i, c in enumerate((*levels, *reversed(levels)))]
    found = visited(*visits)
    assert [one.step_s / found[0].step_s for one in found] == pytest.approx([(10 + c) / 11 for c in levels])


def test_the_deviation_is_pooled_over_all_that_were_visited_twice():
    """By hand: a pair's sum of squares is d²/2 in logarithms; there is no scatter to take off."""
    off = (0.2, -0.1, 0.3)
    visits = [visit(c, 10.0, 0.0) for c in (1, 2, 4, 8)]
    visits += [visit(c, 10.0 * math.exp(d), 0.0) for c, d in zip((1, 2, 4), off, strict=True)]
    found = visited(*visits)
    deviation = math.sqrt(sum(d * d / 2 for d in off) / 3)
    change = change_between(found)
    assert change is not None and change.dof == 3 and change.deviation == pytest.approx(deviation, rel=1e-5)
    half = t_quantile(0.025, 3) * deviation
    assert found[3].high_s == pytest.approx(0.010 * math.exp(half), rel=1e-5), "visited once"
    assert found[0].low_s == pytest.approx(found[0].step_s * math.exp(-half / math.sqrt(2)), rel=1e-5)


def test_what_scatter_explains_is_no_change_of_the_machine():
    found = visited(visit(1, 10.0, 0.1), visit(2, 11.0, 0.1), visit(2, 11.2, 0.1), visit(1, 10.1, 0.1))
    change = change_between(found)
    assert change is not None and change.deviation == 0
    above = math.log(found[0].high_s / found[0].step_s)
    assert above == pytest.approx(math.log(1.1) / math.sqrt(2), rel=1e-3)


def test_one_that_scatters_much_does_not_hide_what_another_shows():
    found = visited(visit(1, 10.0, 0.001), visit(2, 11.0, 1.0), visit(2, 11.0, 1.0), visit(1, 15.0, 0.001))
    change = change_between(found)
    assert change is not None and change.deviation > 0.2


def test_doubt_of_the_client_does_not_average_out():
    sure = visited(visit(1, 10.0, 0.1), visit(1, 10.0, 0.1))
    unsure = visited(*(visit(1, 10.0, 0.1, reasons=("late",)) for _ in range(2)))
    assert unsure[0].high_s == pytest.approx(0.011) and sure[0].high_s < 0.0108


def test_visits_that_differ_beyond_scatter_are_told_by_how_much():
    (said,) = visit_warnings(visited(visit(1, 10.0), visit(2, 11.0), visit(2, 11.1), visit(1, 12.6)))
    assert "at concurrency 1 (+26.0 %): the machine or its load changed while measuring" in said
    assert said.endswith("calibrate again in a quiet window")


def test_visits_that_agree_say_nothing_and_nor_do_points_of_unknown_visits():
    assert visit_warnings(visited(visit(1, 10.0), visit(2, 11.0), visit(2, 11.1), visit(1, 10.1))) == ()
    assert visit_warnings((visit(1, 10.0), visit(2, 11.0))) == ()


def test_that_nothing_was_visited_twice_is_told():
    (said,) = visit_warnings(visited(visit(1, 10.0), visit(2, 11.0)))
    assert "no concurrency was measured twice" in said


def wandering(deviation: float) -> Load:
    return lambda rng, n: np.cumsum(rng.normal(0, deviation, n))


def other_each_time(deviation: float) -> Load:
    return lambda rng, n: rng.normal(0, deviation, n)


def one_jump(factor: float) -> Load:
    return lambda rng, n: np.where(np.arange(n) < rng.integers(1, n), 0.0, math.log(factor))


def steady(_rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return np.zeros(n)


def calibrated(
    rng: np.random.Generator, levels: Sequence[int], quick: bool, load: Load
) -> tuple[CurvePoint, ...]:
    """From traces of as many requests at each visit as the plan has, on a machine slower by exp(load)."""
    plan = CalibrationPlan(
        Workload("x", tuple(Prompt(f"p{i}", "c", text="x") for i in range(64))),
        Sampling(TOKENS), tuple(levels), quick,
    )  # fmt: skip
    visits = plan.visits()
    points: tuple[CurvePoint, ...] = ()
    for one, log in zip(visits, load(rng, len(visits)), strict=True):
        rounds = plan.measure_plan(one).requests // one.concurrency
        scatter = rng.normal(0, SCATTER, (rounds, TOKENS // 8 + 1))
        pace = step_ms(one.concurrency) * np.exp(log + scatter)
        traces = []
        for number in range(rounds):
            steps_ns = np.repeat(pace[number], 8)[:TOKENS] * MS
            at_ns = [int(ns) + number * 10**12 for ns in np.cumsum(steps_ns)]
            traces += [trace(number * one.concurrency + i, at_ns) for i in range(one.concurrency)]
        found = point(traces, one.concurrency)
        assert found is not None
        points = with_visit(points, found)
    return points


def step_ms(concurrency: int) -> float:
    return 10.0 + 2.0 * concurrency


def missed(load: Load, levels: Sequence[int], quick: bool, alone: bool = False) -> int:
    """Of RUNS calibrations those whose interval of relative(4) lacks the truth; `alone`: each point has its
    first visit's own scatter for its interval.
    """
    rng, misses = np.random.default_rng(3), 0
    for _ in range(RUNS):
        points = calibrated(rng, levels, quick, load)
        curve = Curve(tuple(one.visits[0] for one in points) if alone else points)
        _, low, high = curve.relative(4)
        misses += not low <= step_ms(4) / step_ms(1) <= high
    return misses


@pytest.mark.parametrize(("levels", "quick"), [((1, 2, 3, 4, 6), False), ((1, 2, 4, 8), True)])
@pytest.mark.parametrize(
    "load",
    [steady, wandering(0.02), wandering(0.3), other_each_time(0.1), one_jump(2.0)],
    ids=["steady", "wandering a little", "wandering much", "other each time", "one jump"],
)
def test_the_interval_holds_the_truth_however_the_load_changes(
    levels: Sequence[int], quick: bool, load: Load
):
    assert missed(load, levels, quick) <= MOST_MISSED


def test_the_scatter_within_one_visit_would_not():
    assert missed(wandering(0.1), (1, 2, 4, 8), True, alone=True) > RUNS / 2


def test_an_interval_is_no_wider_than_the_machine_asks_for():
    """Without a change of load it is that of the scatter, give or take."""
    rng = np.random.default_rng(4)
    both = [calibrated(rng, (1, 2, 3, 4), False, steady) for _ in range(20)]
    halves = [(high - low) / (2 * ratio) for ratio, low, high in (Curve(one).relative(4) for one in both)]
    assert np.median(halves) < 0.1
