"""The whole explanation of the published experiment: Kimi-K2.5, n-gram k=5, 8 devices over PCIe."""

from dataclasses import replace

import pytest

from breakeven.explain.explain import explain
from breakeven.explain.records import Observation
from tests.unit.explain.cases import calibrated, explained_kimi, kimi, llama

MADE = explained_kimi()
PARTS = {part.name: part for part in MADE.waterfall}


def test_experts_add_3_5_to_4_9_ms():
    added = PARTS["experts"].added_s
    assert added.low * 1e3 == pytest.approx(3.46, abs=0.01)
    assert added.high * 1e3 == pytest.approx(4.87, abs=0.01)
    assert "34.7 (reuse 0.3) to 45.6 (reuse 0) of 384" in PARTS["experts"].source


def test_all_reduce_lies_between_bandwidth_alone_and_the_measured_curve():
    added, source = PARTS["all_reduce"].added_s, PARTS["all_reduce"].source
    assert added.low == pytest.approx(122 * 2 * 7 / 8 * 5 * 14_336 / 63e9)
    assert added.high * 1e3 == pytest.approx(1.17, abs=0.01)
    assert added.low * 1e3 < 0.33 < added.high * 1e3
    assert "bandwidth alone (63 GB/s" in source and "curve measured among 8" in source


def test_a_speedup_is_predicted_at_every_draft_share():
    assert {one.outcome for one in MADE.explained} == {"faster"}
    for one in MADE.explained:
        assert one.predictions[0].speedup.low == one.predictions[0].speedup.high == 1
        assert all(each.speedup.low > 1 for each in one.predictions[1:])
        assert one.observed_speedup < 1


def test_what_is_left_over_is_at_least_so_much():
    least = {one.observation.name: round(one.unexplained_s[0] * 1e3, 1) for one in MADE.explained}
    assert least == {"coding": 5.6, "math": 2.6, "structured": 2.1, "explanatory": 1.2}
    assert {one.unexplained_at_least_when for one in MADE.explained} == {"nothing was ever drafted"}


def test_break_even_is_far_from_what_verifying_costs():
    for one in MADE.explained:
        assert one.break_even_verify == pytest.approx((0.85, 1.55))
        assert one.verify_s.low / one.observation.baseline_tpot_s > 0.2
        assert one.verify_s.high / one.observation.baseline_tpot_s < 0.5


def test_the_causes_in_their_order():
    assert [(one.id, one.confidence) for one in MADE.findings] == [
        ("async_scheduling", "high"),
        ("cuda_graphs", "medium"),
        ("mla_prefill", "medium"),
        ("lookup_only_longest", "medium"),
        ("steps_unlike", "medium"),
        ("drafter_time", "low"),
        ("slow_all_reduce", "low"),
    ]
    assert [one.id for one in MADE.ruled_out] == ["distinct_experts", "weights_over_link", "low_acceptance"]
    assert all(one.next_command and one.check and one.evidence for one in (*MADE.findings, *MADE.ruled_out))


def test_what_is_not_known_is_named_with_what_settles_it():
    assert set(MADE.unknown) == {"draft_share", "acceptance_rate", "context_tokens", "verify_ms"}
    assert "breakeven calibrate URL" in MADE.unknown["verify_ms"]
    assert MADE.engine == "vllm 0.16" and MADE.hardware == "8 × rtx-pro-6000-ws (PCIe Gen5 x16)"


def test_what_is_known_is_not_asked_for():
    known = [replace(one, acceptance_rate=(0.2, 0.2), draft_share=(0.5, 0.5)) for one in kimi().observations]
    made = explained_kimi(observations=tuple(known), context_tokens=2000)
    assert set(made.unknown) == {"verify_ms"}
    for one in made.explained:
        assert one.unexplained_s[1] - one.unexplained_s[0] == pytest.approx(
            0.5 * (one.verify_s.high - one.verify_s.low)
        )


def test_a_slow_drafter_that_is_explained_has_no_engine_to_blame():
    slow = Observation("all", 0.010, 0.0102, (0.0, 0.0), (1.0, 1.0))
    made = explain(llama(slow, engine="vllm", method="ngram", k=8))
    assert made.explained[0].outcome == "slower"
    assert next(one.id for one in made.findings) == "verification_too_dear"
    assert made.ruled_out == ()


def test_a_faster_candidate_rules_nothing_out():
    made = explain(llama(Observation("all", 0.010, 0.006, (0.6, 0.6), (1.0, 1.0))))
    assert made.ruled_out == ()


@pytest.mark.parametrize(
    ("tpot_s", "changes", "words"),
    [
        (0.1, {}, "explains 7"),
        (0.004, {}, "less than the 7.1 ms modelled"),
        (0.0075, {"profiled_s": {"weights": 0.007}}, "ms more than the plain step"),
        (0.010, {"sequences": 4}, "4 sequences per step"),
    ],
)
def test_warnings(tpot_s: float, changes: dict[str, object], words: str):
    made = explain(llama(Observation("all", tpot_s, tpot_s), **changes))
    assert any(words in warning for warning in made.warnings), made.warnings


@pytest.mark.parametrize(
    ("of_break_even", "outcome", "is_close"),
    [(3, "faster", False), (1.2, "faster", True), (0.8, "slower", True), (0.3, "slower", False)],
)
def test_an_outcome_within_the_error_of_the_model_is_said_to_be(
    of_break_even: float, outcome: str, is_close: bool
):
    """A dense model, whose cost of verifying has no range of its own."""
    verify_s = explain(llama(Observation("all", 0.010, 0.010))).explained[0].verify_s.estimate
    rate = of_break_even * verify_s / 0.010 / 4
    made = explain(llama(Observation("all", 0.010, 0.010, (rate, rate))))
    assert made.explained[0].outcome == outcome
    said = "all: what is predicted holds for the model as it is, and not if it errs by 50.0 %"
    assert any(one.startswith(said) for one in made.warnings) == is_close


def test_what_is_near_is_ruled_out_with_less_confidence():
    """A mixture of experts that becomes slower although verifying as modelled pays."""
    for rate, confidence in ((0.17, "high"), (0.11, "medium")):
        seen = tuple(replace(one, acceptance_rate=(rate, rate)) for one in kimi().observations)
        made = explained_kimi(observations=seen)
        assert {one.outcome for one in made.explained} == {"faster"}
        found = {one.id: one.confidence for one in made.ruled_out}
        assert found["low_acceptance"] == confidence and found["weights_over_link"] == "high"


def test_no_warnings_without_a_reason():
    assert MADE.warnings == ()


def test_a_calibration_measures_what_verifying_costs():
    made = explained_kimi(measured=calibrated(), doubts=("a point is doubted",))
    assert "verify_ms" not in made.unknown
    assert [part.name for part in made.waterfall] == ["step"]
    assert {one.outcome for one in made.explained} == {"faster"}
    assert made.warnings[0] == "a point is doubted"
    assert any("upper bound" in warning for warning in made.warnings)
    experts = next(one for one in made.ruled_out if one.id == "distinct_experts")
    assert experts.step_s is None and experts.next_command == "" and experts.check
    assert "instead of 8. All of verifying" in experts.evidence


def test_a_plain_step_unlike_that_of_the_calibration_is_said():
    said = "coding: the plain step took 16.0 ms, and 13.0 ms where it was calibrated"
    made = explained_kimi(measured=calibrated())
    assert [one.startswith(said) for one in made.warnings if "where it was calibrated" in one] == [True]
