"""What of a step nothing accounts for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.diagnose.causes.left_over import left_overs, suspicion
from breakeven.diagnose.evidence import Drafting, Evidence
from breakeven.explain.explain import explain
from tests.unit.diagnose.compared import DENSE, PLAIN_S, compared, counted, explained, observed, uncosted
from tests.unit.diagnose.healthy import COUNTERS, healthy
from tests.unit.explain.cases import kimi


@given(st.floats(0.3, 3.0))
def test_what_is_left_is_the_step_without_all_that_is_known(gain: float) -> None:
    (left,) = left_overs(compared(gain, counted((0.5, 0.3, 0.1, 0.1))))
    step_s = PLAIN_S / gain * 2.0
    verify_s = 0.0151 - PLAIN_S
    assert left.most_s - left.least_s < 0.005
    assert left.least_s < step_s - PLAIN_S - verify_s < left.most_s + 0.0001


@pytest.mark.parametrize(("method", "token_s"), [("ngram", 0.0), ("eagle3", 1.188e-3)])
def test_what_is_left_is_beyond_the_dearest_verifying_and_drafting(method: str, token_s: float) -> None:
    """vLLM's lookup takes 0.11 ms at most, the handling of drafts 1.3, the slowest head 1.188 a token."""
    counters = replace(COUNTERS, steps=2000, drafts=2000, drafted_tokens=8000)
    evidence = compared(1.0, counters, drafting=Drafting(method, 4))
    assert evidence.case
    unknown = replace(evidence.case, observations=(replace(observed(1.0, counters), draft_share=None),))
    for case in (evidence.case, unknown) if method == "eagle3" else (evidence.case,):
        (left,) = left_overs(replace(evidence, case=case, explanation=explain(case)))
        dearest = DENSE.relative(Step(5), PLAIN_STEP).high * PLAIN_S
        flat_s = 0.11e-3 if method == "ngram" else 0.0
        expected = PLAIN_S * (1 + 4 * 0.4) - dearest - flat_s - 1.3e-3 - 4 * token_s
        assert left.least_s == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (healthy(), None),
        (compared(2.0), "no"),
        (compared(1.1), "sure"),
        (compared(0.5), "sure"),
        (uncosted(1.5, COUNTERS), "no"),
        (uncosted(0.9, COUNTERS), "maybe"),
        (uncosted(0.7, counted((0.9,))), "sure"),
        (explained(kimi()), "sure"),
    ],
)
def test_whether_steps_take_too_long(evidence: Evidence, expected: str | None) -> None:
    assert suspicion(evidence) == expected
