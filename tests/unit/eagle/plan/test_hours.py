"""GPU hours, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.eagle.plan.assumed import STATES_UTILISATION, TRAINING_UTILISATION
from breakeven.eagle.plan.head import head_of
from breakeven.eagle.plan.hours import Hours, hours_of
from breakeven.eagle.plan.ranges import exactly
from breakeven.errors import UsageError
from breakeven.interval import Interval
from tests.unit.eagle.plan.builders import H100, asked, data
from tests.unit.forecast.costs import Line

PEAK = 989e12


def hours(**changes) -> Hours:
    one = asked(cost=Line(a=0.010, b=0.0001), **changes)
    return hours_of(one, head_of(one.geometry, one.data.draft_vocabulary))


def test_replies_by_the_cost_of_a_step():
    found = hours(of=data(1000, 2000.0))
    assert found.replies_per_s.estimate == pytest.approx(64 / 0.0164)
    assert found.generation.estimate == pytest.approx(1000 * 1000 / (64 / 0.0164) / 3600)


def test_each_device_of_the_server_counts():
    assert hours(tp=2).generation.estimate == pytest.approx(2 * hours().generation.estimate)


def test_states_and_training_by_arithmetic():
    one = asked(of=data(1000, 2000.0))
    found = hours(of=data(1000, 2000.0))
    head = head_of(one.geometry, 32_000)
    states = 2e6 * one.geometry.flops_per_token() / PEAK / 3600
    training = 2e6 * 2 * 6 * (head.fused() + 7 * head.stepped()) / PEAK / 3600
    assert found.states_once.estimate == pytest.approx(states / STATES_UTILISATION.value.estimate)
    assert found.states_once.low == pytest.approx(states / STATES_UTILISATION.value.high)
    assert found.training.high == pytest.approx(training / TRAINING_UTILISATION.value.low)


def test_online_makes_the_states_in_every_epoch():
    found = hours(of=data(epochs=Interval(2, 1, 3)))
    assert found.states_every_epoch.estimate == pytest.approx(2 * found.states_once.estimate)
    assert found.online.high > found.offline.high
    assert found.online.low == pytest.approx(found.offline.low), "in one epoch they are made once as well"


def test_recorded_replies_are_not_generated():
    assert hours(of=data(reply_tokens_per_sample=exactly(0.0))).generation == Interval(0, 0, 0)


def test_a_device_of_unknown_rate():
    with pytest.raises(UsageError, match="no BF16 rate is known of h100-sxm"):
        hours(gpu=replace(H100, bf16_tflops=None))
