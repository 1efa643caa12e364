"""Learned step times where steps with drafts had not come for a while."""

from __future__ import annotations

import pytest

from breakeven.guard.live_cost import LiveCost
from breakeven.guard.probes import FIRST_REST, MOST_REST
from breakeven.guard.tracked import LEAST
from tests.unit.guard.driving import Server, curve, gentle, ratio


def slowed() -> tuple[LiveCost, Server]:
    """Of a server whose drafts have just become three times as slow, as is known."""
    cost, server = LiveCost(curve(gentle)), Server(noise=0.0)
    server.told(cost, 1, 4, times=20)
    server.drafted_factor = 3.0
    server.told(cost, 4, times=5)
    server.told(cost, 1, times=LEAST)
    assert ratio(cost, 4) == pytest.approx(3.9, rel=0.05)
    return cost, server


def test_one_probe_after_a_rest_is_enough_to_find_drafts_fast_again():
    """The steps from before the rest do not outvote it."""
    cost, server = slowed()
    server.told(cost, 1, times=FIRST_REST + 1)
    server.drafted_factor = 1.0
    leaps = cost.told.leaps
    server.told(cost, 4)
    assert cost.told.leaps == leaps + 1 and cost.in_doubt
    server.told(cost, 1, times=LEAST)
    assert ratio(cost, 4) == pytest.approx(1.3, rel=0.05)


def test_one_fast_step_among_others_is_not_enough():
    cost, server = slowed()
    server.drafted_factor = 1.0
    server.told(cost, 4)
    assert not cost.in_doubt and ratio(cost, 4) > 3


def probe_due_after(cost: LiveCost, server: Server) -> int:
    """Plain steps until one is."""
    for steps in range(10 * FIRST_REST):
        if cost.probe(1, 1):
            return steps
        server.told(cost, 1)
    raise AssertionError


def test_a_change_of_drafts_that_are_made_anyway_hurries_the_next_probe():
    cost, server = LiveCost(curve(gentle)), Server(noise=0.0)
    for rest in (1, 2, 4):
        assert rest * FIRST_REST - 1 <= probe_due_after(cost, server) <= rest * FIRST_REST
        server.told(cost, 2)
    server.told(cost, 2, times=20)
    server.drafted_factor = 3.0
    server.told(cost, 2, times=LEAST)
    assert cost.in_doubt
    server.told(cost, 1, times=LEAST)
    assert probe_due_after(cost, server) <= FIRST_REST


def test_what_no_draft_has_paid_for_long_is_believed_less():
    """The extra alone: what a draft of that size takes beside it is the server's own."""
    cost, server = slowed()
    server.told(cost, 1, times=MOST_REST)
    assert ratio(cost, 4) == pytest.approx(1.3 * 3**0.5, rel=0.05)
    server.told(cost, 1, times=9 * MOST_REST)
    assert ratio(cost, 4) == pytest.approx(1.3, rel=0.05)
    server.told(cost, 4)
    assert ratio(cost, 4) == pytest.approx(3.9, rel=0.05)


def test_drafts_that_are_cheap_beside_plain_steps_stay_so():
    cost, server = LiveCost(curve(gentle)), Server(noise=0.0)
    server.drafted_factor = 0.8
    server.told(cost, 1, 4, times=20)
    before = ratio(cost, 4)
    server.told(cost, 1, times=3 * MOST_REST)
    assert ratio(cost, 4) == pytest.approx(before, rel=0.02) and before < 1.2
