"""The rows of cases.csv with area `diagnose`, one test each, named by the row's id."""

import pytest

from breakeven.acceptance.stated import Stated
from breakeven.diagnose.diagnose import diagnose
from breakeven.diagnose.evidence import Drafting, Evidence
from breakeven.diagnose.ratios import step_ratio
from breakeven.explain.observed import from_speeds
from breakeven.interval import Interval
from tests.cases.rows import assert_every_row_has_its_test


def heard(
    baseline: float, candidate: float, ratio: str, value: float, method: str, k: int, engine: str = "vllm"
) -> Evidence:
    """What an issue tells: two speeds in tokens per second, and one ratio of speculation."""
    return Evidence(
        drafting=Drafting(method, k),
        engine=engine,
        stated=(Stated(ratio, Interval(value, value, value), "the issue"),),
        observations=(from_speeds("all", baseline, candidate),),
    )


def test_case_35_vllm_39680_the_step_and_not_the_acceptance():
    """One token drafted at every step, and 96.6 % of them accepted."""
    evidence = heard(342, 128, "acceptance_rate", 0.966, "mtp", 1)
    steps = step_ratio(evidence)
    assert steps and steps.estimate == pytest.approx(5.3, abs=0.05)
    first, *others = diagnose(evidence).findings
    assert first.id == "step_cost" and first.confidence == "high"
    assert "5.25 plain steps" in first.title and "96.6 %" in first.evidence
    assert "not the acceptance" in first.evidence
    assert {"verification_too_dear", "mismatched_head", "drafts_rare"}.isdisjoint(one.id for one in others)


def test_case_36_vllm_47277_graphs_and_attention_are_to_be_checked():
    """A figure of the thread: 26.51 tok/s without, and 17.73 with a head that drafts one token, at an
    acceptance length of 1.75."""
    evidence = heard(26.51, 17.73, "mean_acceptance_length", 1.75, "dflash", 1)
    findings = {one.id: one for one in diagnose(evidence).findings}
    assert next(iter(findings)) == "step_cost"
    for name, word in (("cuda_graphs", "cudagraph"), ("attention_backend", "attention backend")):
        assert findings[name].confidence == "low" and word in findings[name].next_command
    faster = heard(26.51, 40.0, "mean_acceptance_length", 1.75, "dflash", 1)
    assert diagnose(faster).findings == ()


def test_every_row_of_the_area_has_its_test():
    assert_every_row_has_its_test("diagnose", globals())
