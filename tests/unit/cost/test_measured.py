"""A step's cost read off a concurrency curve: exact for a dense model, bounded for a mixture of experts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.measured import Measured
from breakeven.cost.step import PLAIN_STEP, Step, StepCost
from breakeven.interval import Interval

MOE_ON_A_CPU = {1: 13.2, 2: 18.0, 3: 18.9, 4: 20.3, 6: 24.6, 8: 30.8}
"""Step ms by sequences, of 32 experts of which 4 wake, as vLLM took them on a CPU, …"""
VERIFIED = {6: 21.3, 8: 25.5}
"""… and by the tokens of one sequence that verifies so many."""
STEPS = st.builds(Step, tokens=st.floats(1, 16), sequences=st.integers(1, 16))
MOE = st.sampled_from([True, False, None])
STEPS_MS = st.lists(st.floats(1.0, 100.0), min_size=3, max_size=8)


def curve(steps_ms: dict[int, float], spread: float = 0.02, context: float | None = None) -> Curve:
    return Curve(
        tuple(
            CurvePoint(
                c, ms / 1e3, ms / 1e3 * (1 - spread), ms / 1e3 * (1 + spread), 20, context_tokens=context
            )
            for c, ms in steps_ms.items()
        )
    )


def line_ms(tokens: float) -> float:
    return 10 + 0.5 * tokens


LINE = curve({c: line_ms(c) for c in (1, 2, 4, 8, 16)})


@pytest.mark.parametrize("tokens", VERIFIED)
def test_verification_by_a_mixture_of_experts_as_measured(tokens: int):
    cost = Measured(curve(MOE_ON_A_CPU), moe=True)
    found = cost.seconds(Step(tokens))
    assert found.estimate * 1e3 == pytest.approx(VERIFIED[tokens], rel=0.09)
    assert found.low * 1e3 < VERIFIED[tokens] < MOE_ON_A_CPU[tokens] < found.high * 1e3
    naive = Measured(curve(MOE_ON_A_CPU), moe=False).seconds(Step(tokens)).estimate * 1e3
    assert naive == pytest.approx(MOE_ON_A_CPU[tokens])
    plain = Step(1)
    assert cost.relative(Step(tokens), plain).estimate == pytest.approx(found.estimate / 13.2e-3)


@given(STEPS)
def test_a_straight_line_is_reproduced(step: Step):
    found = Measured(LINE, moe=False).seconds(step)
    assert found.estimate * 1e3 == pytest.approx(line_ms(step.batch_tokens))
    base = Step(1, step.sequences)
    expected = line_ms(step.batch_tokens) / line_ms(step.sequences)
    assert Measured(LINE, moe=False).relative(step, base).estimate == pytest.approx(expected)


@given(STEPS_MS, MOE, STEPS, STEPS)
def test_estimates_lie_in_their_intervals(steps_ms: list[float], moe: bool | None, a: Step, b: Step):
    cost: StepCost = Measured(curve({c + 1: ms for c, ms in enumerate(steps_ms)}), moe)
    for found in (cost.seconds(a), cost.relative(a, b)):
        assert 0 <= found.low <= found.estimate <= found.high
    assert cost.relative(a, b).estimate == pytest.approx(cost.seconds(a).estimate / cost.seconds(b).estimate)
    assert cost.relative(a, a) == Interval(1, 1, 1)
    assert sum(cost.parts(a).values()) == cost.seconds(a).estimate


@given(STEPS_MS, MOE, STEPS, st.floats(0, 8))
def test_more_tokens_never_cost_less(steps_ms: list[float], moe: bool | None, less: Step, further: float):
    cost = Measured(curve({c + 1: ms for c, ms in enumerate(steps_ms)}), moe)
    more = Step(less.tokens + further, less.sequences)
    assert cost.seconds(less).estimate <= cost.seconds(more).estimate * (1 + 1e-9)
    base = Step(1, less.sequences)
    assert cost.relative(less, base).estimate <= cost.relative(more, base).estimate * (1 + 1e-9)
    assert cost.relative(more, base).low >= 1 - 1e-9


@given(STEPS.filter(lambda step: step.tokens > 1.01))
def test_experts_widen_the_interval_downwards_only(step: Step):
    dense, mixed, unknown = (Measured(LINE, moe).seconds(step) for moe in (False, True, None))
    assert mixed.low < dense.low and mixed.estimate < dense.estimate and mixed.high == dense.high
    assert unknown == Interval(dense.estimate, mixed.low, dense.high)


def test_a_measured_reuse_takes_the_place_of_the_assumed():
    reuse = Interval(0.5, 0.4, 0.6)
    found = Measured(LINE, moe=True, reuse=reuse).seconds(Step(9))
    assert found.estimate * 1e3 == pytest.approx(line_ms(1 + 8 * 0.5))
    high = Measured(LINE, moe=True, reuse=Interval(0.4, 0.4, 0.4)).seconds(Step(9)).high
    assert found.high == high < Measured(LINE, moe=True).seconds(Step(9)).high
    (said,) = Measured(LINE, moe=True, reuse=reuse).warnings(Step(9))
    assert said.endswith("with 40% to 60% of experts reused")


def test_independent_sequences_share_no_experts():
    plain = Step(1, 8)
    assert Measured(LINE, moe=True).seconds(plain) == Measured(LINE, moe=False).seconds(plain)


def test_both_steps_errors_count_in_a_ratio():
    found = Measured(LINE, moe=False).relative(Step(2, 4), Step(1, 4))
    assert found.high / found.estimate - 1 == pytest.approx(0.02 * 2**0.5)


def test_experts_and_extrapolation_are_said():
    within, beyond = Step(4, 4), Step(4, 8)
    assert Measured(LINE, moe=False).warnings(within) == ()
    assert "beyond the last measured point (16)" in Measured(LINE, moe=False).warnings(beyond)[0]
    (said,) = Measured(LINE, moe=True).warnings(within)
    assert said.startswith("for a mixture of experts the curve is an upper bound") and "70%" in said
    (said,) = Measured(LINE, moe=None).warnings(PLAIN_STEP)
    assert "is not known" in said


def test_a_context_far_beyond_the_curves_is_said():
    cost = Measured(curve({1: 10, 2: 11, 4: 12}, context=500), moe=False)
    assert cost.warnings(Step(2, 1, 1000)) == ()
    assert "500 tokens of context" in cost.warnings(Step(2, 1, 1001))[0]
