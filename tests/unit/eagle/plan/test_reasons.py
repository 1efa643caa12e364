"""Go, no-go, undecided: each ground, and the worst of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.eagle.plan.reasons import (
    acceptance_reason,
    data_reason,
    decided,
    hours_reason,
    judged,
    reached,
    route_reason,
)
from breakeven.eagle.plan.records import Outcome, Reason
from breakeven.forecast.needed import needed
from breakeven.forecast.published import published
from breakeven.interval import Interval
from tests.unit.eagle.plan.builders import CHEAP, DEAR, asked, data, plan
from tests.unit.forecast.costs import FREE, Line


@pytest.mark.parametrize(
    ("speedup", "outcome"),
    [
        (Interval(1.8, 1.1, 2.5), "go"),
        (Interval(1.8, 0.9, 2.5), "undecided"),
        (Interval(1.4, 1.1, 1.6), "undecided"),
        (Interval(1.3, 1.2, 1.4), "no-go"),
        (Interval(0.8, 0.7, 0.9), "no-go"),
    ],
)
def test_a_speedup_against_a_goal_of_one_and_a_half(speedup: Interval, outcome: Outcome):
    assert judged(speedup, 1.5) == outcome


def test_the_worst_ground_decides():
    grounds = [Reason("data", outcome, "") for outcome in ("go", "undecided", "no-go")]
    assert [decided(grounds[: n + 1]) for n in range(3)] == ["go", "undecided", "no-go"]


def test_lengths_of_the_targets_own_heads_come_first():
    windows = needed(CHEAP, FREE, (2, 3, 4), (1, 8), 0)
    own = reached(windows, published("eagle3"), "kimi-k2.5", 8)
    assert own is not None
    assert (own.own, own.k, own.concurrency) == (True, 3, 8)
    assert (own.lengths.low, own.lengths.high) == (2.295, 3.342)
    other = reached(windows, published("eagle3"), "a model of one's own", 1)
    assert other is not None
    assert not other.own and other.lengths.low == min(
        one.acceptance_length for one in published("eagle3") if one.k == other.k
    )
    assert reached(needed(CHEAP, FREE, (16,), (1,), 0), published("eagle3"), "kimi-k2.5", 1) is None


def test_speedup_is_the_published_length_over_the_needed_one():
    windows = needed(Line(a=0.010, b=0.001), FREE, (3,), (1,), 0)
    found = reached(windows, published("eagle3"), "kimi-k2.5", 1)
    assert found is not None
    assert found.needed.estimate == pytest.approx(14 / 11)
    assert found.speedup.low == pytest.approx(2.295 * 11 / 14)


@pytest.mark.parametrize(("cost", "outcome"), [(CHEAP, "go"), (DEAR, "no-go")])
def test_acceptance(cost: Line, outcome: Outcome):
    windows = needed(cost, FREE, (3,), (1,), 0)
    reason = acceptance_reason(reached(windows, published("eagle3"), "kimi-k2.5", 1), 1.5)
    assert reason.outcome == outcome
    assert "2.29 to 3.34" in reason.words or "2.30 to 3.34" in reason.words


def test_nothing_published_at_a_window_is_undecided():
    reason = acceptance_reason(None, 1.5)
    assert reason.outcome == "undecided" and "--ks 2-6" in reason.words


def test_too_few_samples():
    windows = needed(Line(a=0.010, b=0.006), FREE, (3,), (1,), 0)
    found = reached(windows, published("eagle3"), "kimi-k2.5", 1)
    few, many, none = (data_reason(n, windows, 1, found, 1.2) for n in (50_000, 2_000_000, 100))
    assert few.outcome == "no-go" and "qwen2.5-7b on 50,000 reached 1.94" in few.words
    assert many.outcome != "no-go"
    assert none.outcome == "undecided" and "fewer than any published head" in none.words


def test_lengths_of_a_run_are_held_against_its_own_window():
    """Those of this target are known for two and for four drafts, those of the run for three."""
    line = Line(a=0.010, b=0.004)
    windows = needed(line, FREE, (2, 3, 4), (1,), 0)
    found = reached(windows, published("eagle3"), "llama-3.1-8b", 1)
    assert found is not None and found.own and found.k in (2, 4)
    reason = data_reason(500_000, windows, 1, found, 1.5)
    assert "kimi-k2.7-code on 400,000 at k=3 reached 2.66 to 3.23" in reason.words
    assert f"{2.66 * 14 / 26:.2f}× to {3.23 * 14 / 26:.2f}×" in reason.words
    dear = data_reason(500_000, windows, 1, found, 3.0)
    assert dear.outcome == "undecided" and f"reaches at k={found.k} is not known" in dear.words
    without = needed(line, FREE, (2, 4), (1,), 0)
    unasked = data_reason(500_000, without, 1, reached(without, published("eagle3"), "llama-3.1-8b", 1), 1.5)
    assert unasked.outcome == "undecided" and unasked.words.endswith("type --ks 3")


def test_routes():
    yes = plan(disk_bytes=10**14).routes
    no = [replace(one, possible="no") for one in yes]
    perhaps = [replace(one, possible="perhaps") if one.way == "offline" else one for one in no]
    assert [route_reason(routes).outcome for routes in (yes, perhaps, no)] == ["go", "undecided", "no-go"]


def test_hours_against_a_budget():
    one = asked(of=data(100_000), disk_bytes=10**14)
    routes = plan(one).routes
    need = next(route.gpu_hours for route in routes if route.way == "offline")
    budgets = (None, need.high + 1, (need.low + need.high) / 2, need.low / 2)
    found = [hours_reason(asked(of=data(100_000), gpu_hours=budget), routes) for budget in budgets]
    assert [reason.outcome if reason else None for reason in found] == [None, "go", "undecided", "no-go"]
    assert found[3] is not None and "they are enough for" in found[3].words


def test_what_would_narrow_the_hours_is_said_where_samples_are_little_known():
    known, unknown = data(100_000), data(100_000, Interval(2048, 1024, 10_000))
    said = []
    for of in (known, unknown):
        routes = plan(of=of, disk_bytes=10**15).routes
        need = next(route.gpu_hours for route in routes if route.way == "offline")
        reason = hours_reason(asked(of=of, gpu_hours=need.estimate), routes)
        assert reason is not None and reason.outcome == "undecided"
        said.append("--tokens-per-sample" in reason.words)
    assert said == [False, True]
