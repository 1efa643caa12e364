"""The ledger by the time that steps took."""

from __future__ import annotations

import math

import numpy as np
import pytest

from breakeven.guard.match_index import Match
from breakeven.guard.policy import Policy, RequestState
from breakeven.guard.reasons import Reason
from breakeven.guard.settings import GuardSettings
from tests.unit.guard.costs import line

TIMES = line(0.008, 0.002)
DRAFT = np.arange(100, 110, dtype=np.int32)
WRONG = np.full(1, 7, np.int32)
NO_BOUND = GuardSettings(epsilon=math.inf)
SLOW = 3.0


def decided(policy: Policy, *states: RequestState) -> int:
    """Draft tokens of a step in which every request has a long match."""
    return sum(policy.decide(states, [Match(30, 500, DRAFT)] * len(states)).ks)


def seconds(drafted: int, sequences: int = 1) -> float:
    """As they are believed."""
    return float(TIMES.seconds(sequences + drafted, sequences)[-1])


def wrong_step(policy: Policy, state: RequestState, factor: float) -> float:
    """A step whose drafts fail and which takes so many times what is believed; what it saves in truth."""
    k = decided(policy, state)
    took_s = seconds(k) * (factor if k else 1.0)
    policy.observe([state], [WRONG], took_s)
    return 1 - took_s / seconds(0)


def test_slow_steps_with_drafts_are_charged_from_the_second_on():
    policy = Policy(NO_BOUND, TIMES)
    state = policy.begin()
    first = wrong_step(policy, state, SLOW)
    assert first < -1 and policy.saved(state) == pytest.approx((first - 1) / SLOW + 1)
    before = policy.saved(state)
    second = wrong_step(policy, state, SLOW)
    assert policy.saved(state) - before == pytest.approx(second)
    assert policy.counters.ledger == policy.saved(state)


def lost_to_an_adversary(told: bool, steps: int = 400) -> tuple[float, float]:
    """Plain steps lost in truth where drafts fail whenever they are verified, and only then, and nothing
    learns that they are slow; and the most that one step lost."""
    policy = Policy(GuardSettings(), TIMES)
    state = policy.begin()
    losses = []
    for _ in range(steps):
        k = decided(policy, state)
        took_s = seconds(k) * (SLOW if k else 1.0)
        policy.observe([state], [WRONG if k else DRAFT[:1]], took_s if told else None)
        losses.append(took_s / seconds(0) - 1)
    assert policy.counters.reasons[Reason.DRAFTED] > 0
    return sum(losses), max(losses)


def test_a_cost_that_is_wrong_for_good_costs_no_more_than_epsilon_and_two_steps():
    """One step is charged too little, and one more is taken by what is believed."""
    allowed = GuardSettings().spending * 400
    lost, largest = lost_to_an_adversary(told=True)
    assert lost <= allowed + 2 * largest
    lost, largest = lost_to_an_adversary(told=False)
    assert lost > allowed + 2 * largest


def test_a_plain_step_is_a_plain_step_however_long_it_took():
    policy = Policy(NO_BOUND, line(0.0, 0.010))
    state = policy.begin()
    for _ in range(3):
        assert decided(policy, state) == 0
        policy.observe([state], [WRONG], 5.0)
    assert policy.saved(state) == 0.0


@pytest.mark.parametrize("took_s", [None, 0.0, -1.0, math.nan, math.inf])
def test_without_a_time_what_was_believed_is_charged(took_s: float | None):
    policy = Policy(NO_BOUND, TIMES)
    state = policy.begin()
    expected = 0.0
    for _ in range(3):
        expected += 1 - seconds(decided(policy, state)) / seconds(0)
        policy.observe([state], [WRONG], took_s)
    assert policy.saved(state) == pytest.approx(expected)


def test_a_step_of_other_requests_than_were_decided_is_charged_as_believed():
    policy = Policy(NO_BOUND, TIMES)
    states = [policy.begin(), policy.begin()]
    expected = 0.0
    for _ in range(3):
        k = decided(policy, *states)
        expected += 1 - seconds(k, 2) / seconds(0, 2)
        policy.observe(states[:1], [WRONG], SLOW * seconds(k, 2))
    assert [policy.saved(state) for state in states] == pytest.approx([expected, 0.0])


def test_a_time_told_twice_is_charged_once():
    policy = Policy(NO_BOUND, TIMES)
    state = policy.begin()
    wrong_step(policy, state, SLOW)
    before = policy.saved(state)
    policy.observe([state], [WRONG], 5.0)
    assert policy.saved(state) == before
