"""Requests whose grammar cuts their drafts: a step that verified less teaches nothing of its cost."""

from __future__ import annotations

import pytest

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.guard.settings import GuardSettings
from breakeven.guard.vllm_steps import GuardedSteps, Limits
from tests.unit.guard.fake_vllm import WIDTH, FakeVllm, serve

PLAIN_S = 0.01
CURVE = Curve(tuple(CurvePoint(n, *(PLAIN_S * (0.9 + 0.1 * n),) * 3, 20) for n in (1, 2, 4, 8, 16, 32)))
SETTINGS = GuardSettings(epsilon=0.5)
"""Much may be lost, so that the first drafts are long."""


@pytest.mark.parametrize("allowed", (None, 0, 1))
def test_what_was_not_verified_is_not_learned_to_be_free(allowed: int | None) -> None:
    """Each step takes what a plain one does: with a grammar, because nothing was verified."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += PLAIN_S
        return now

    steps, fake = GuardedSteps(SETTINGS, Limits(10, WIDTH, WIDTH), clock, curve=CURVE), FakeVllm()
    prompt = [i % 97 * 7 for i in range(400)]
    fake.start(prompt, prompt).allowed = allowed
    serve(fake, steps.step)
    seconds = steps.cost.seconds(8, 1)
    assert steps.policy.counters.drafted > 50 and seconds is not None
    if allowed is None:
        assert steps.cost.told.drafted > 20 and seconds[6] == pytest.approx(PLAIN_S, rel=0.2)
    else:
        assert steps.cost.told.drafted == 0 and seconds[6] == pytest.approx(1.5 * PLAIN_S, rel=0.05)
