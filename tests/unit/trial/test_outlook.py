"""Which candidate is tried first, and which need not be."""

from __future__ import annotations

import math

import pytest

from breakeven.engines.speculation import SpeculationConfig
from breakeven.interval import Interval
from breakeven.trial.outlook import Outlook, by_promise, reason_to_skip


def outlook(estimate: float | None, low: float = 0.0, high: float = 9.0, k: int = 1) -> Outlook:
    speedup = None if estimate is None else Interval(estimate, low, high)
    return Outlook(SpeculationConfig("ngram", k), speedup, "")


def test_the_most_promising_is_first_and_those_without_a_forecast_last():
    found = by_promise([outlook(None, k=1), outlook(0.9, k=2), outlook(None, k=3), outlook(1.4, k=4)])
    assert [one.candidate.k for one in found] == [4, 2, 1, 3]


@pytest.mark.parametrize(
    ("high", "above", "skipped"),
    [(0.99, 1.0, True), (1.0, 1.0, True), (1.01, 1.0, False), (0.5, None, False)],
)
def test_the_high_end_must_be_above_what_is_asked(high: float, above: float | None, skipped: bool):
    reason = reason_to_skip(outlook(0.4, 0.3, high), above, [])
    assert (reason is not None) == skipped


def test_one_that_cannot_reach_what_was_measured_is_skipped():
    measured = [Interval(1.1, 1.0, 1.2), Interval(1.3, 1.25, 1.35)]
    assert reason_to_skip(outlook(1.2, 1.1, 1.24), None, measured) is not None
    assert reason_to_skip(outlook(1.2, 1.1, 1.25), None, measured) is None


def test_one_without_a_forecast_is_tried():
    assert reason_to_skip(outlook(None), 1.0, [Interval(2.0, 1.9, 2.1)]) is None


def test_a_forecast_of_nothing_is_above_nothing():
    assert reason_to_skip(outlook(math.nan, math.nan, math.nan), 1.0, []) is not None
