from dataclasses import replace

import pytest

from breakeven.cost.hardware import hardware
from breakeven.cost.presets import preset
from breakeven.explain.explain import explain
from breakeven.explain.observed import from_speeds
from breakeven.explain.records import Observation
from tests.unit.explain.cases import calibrated, explained_kimi, finding, kimi, llama

TOO_DEAR = "verification_too_dear"


@pytest.mark.parametrize("name", ["async_scheduling", "cuda_graphs", "mla_prefill"])
def test_causes_of_vllm_are_not_laid_at_another_engine(name: str):
    assert finding(explained_kimi(), name)
    assert finding(explained_kimi(engine="sglang"), name) is None
    assert finding(explained_kimi(engine=None), name) is None


@pytest.mark.parametrize(
    ("method", "off"), [("ngram", True), ("suffix", True), ("eagle3", False), ("mtp", False)]
)
def test_async_scheduling_goes_with_the_method(method: str, off: bool):
    assert (finding(explained_kimi(method=method), "async_scheduling") is not None) == off


@pytest.mark.parametrize(("version", "confidence"), [("0.16", "high"), (None, "high"), ("0.11.2", "low")])
def test_async_scheduling_is_the_default_since_0_14(version: str | None, confidence: str):
    found = finding(explained_kimi(engine_version=version), "async_scheduling")
    assert found and found.confidence == confidence


def test_only_latent_attention_has_its_prefill_path():
    seen = Observation("x", 0.010, 0.013, (0.3, 0.3))
    assert finding(explain(llama(seen, engine="vllm", method="ngram")), "mla_prefill") is None


def test_the_prefill_path_grows_with_context():
    short, long = (explained_kimi(context_tokens=n) for n in (1000, 8000))
    a, b = finding(short, "mla_prefill"), finding(long, "mla_prefill")
    assert a and b and a.step_s and b.step_s
    assert b.step_s[1] == pytest.approx(8 * a.step_s[1])
    # 61 layers · 2 · 1000 · 512 · 64 · 256 operations on 8 devices at 72 % of 503 TFLOPS
    assert a.step_s[1] == pytest.approx(61 * 2 * 1000 * 512 * 64 * 256 / (8 * 0.72 * 503e12))


@pytest.mark.parametrize(
    ("settings", "there"),
    [
        ({"prompt_lookup_max": 4}, True),
        ({"prompt_lookup_max": 4, "prompt_lookup_min": 2}, False),
        ({"prompt_lookup_max": 1}, False),
        ({}, False),
    ],
)
def test_a_longest_match_alone_is_the_shortest_too(settings: dict[str, int], there: bool):
    assert (finding(explained_kimi(settings=settings), "lookup_only_longest") is not None) == there
    assert finding(explained_kimi(settings=settings, method="eagle3"), "lookup_only_longest") is None


def test_plain_steps_far_apart_hold_more_than_decoding():
    found = finding(explained_kimi(), "steps_unlike")
    assert found and "coding took 3.4 ms longer than explanatory" in found.evidence
    alike = tuple(one for one in kimi().observations if one.name != "coding")
    assert finding(explained_kimi(observations=alike), "steps_unlike") is None


def test_no_context_is_named_that_no_request_has():
    seen = (Observation("short", 0.010, 0.010), Observation("long", 0.100, 0.100))
    found = finding(explain(replace(llama(seen[0]), observations=seen)), "steps_unlike")
    assert found and "without speculation, which context cannot explain." in found.evidence
    assert "tokens of context" not in found.evidence
    near = (seen[0], Observation("long", 0.012, 0.012))
    found = finding(explain(replace(llama(seen[0]), observations=near)), "steps_unlike")
    assert found and "tokens of context" in found.evidence


def test_faster_than_if_verifying_were_free_is_not_of_speculation():
    """At most 1 + 0.5 · 4 · 0.5 = 2 times as fast."""
    for tpot_s, there in ((0.0049, True), (0.0051, False)):
        seen = Observation("x", 0.010, tpot_s, (0.3, 0.5), (0.1, 0.5))
        found = finding(explain(llama(seen)), "faster_than_free")
        assert (found is not None) == there
        if found:
            assert found.confidence == "high" and "x 2.04× of 2.00×" in found.evidence


def test_no_acceptance_rate_above_1_is_asked_for():
    seen = Observation("x", 0.010, 0.013, (0.3, 0.3), (1.0, 1.0))
    for last_ms, said in ((60.0, "pays at no acceptance rate"), (14.0, "pays from an acceptance rate of")):
        steps_ms = {1: 10.0, 2: 10.0 + (last_ms - 10) / 4, 5: last_ms, 6: last_ms + 1}
        curve = calibrated(moe=False, steps_ms=steps_ms)
        found = finding(explain(llama(replace(seen, acceptance_rate=(0.0, 0.05)), measured=curve)), TOO_DEAR)
        assert found and said in found.evidence


@pytest.mark.parametrize("known", ["nothing", "model", "both"])
def test_causes_that_need_what_is_not_known_are_left_out_and_named(known: str):
    case = kimi(measured=calibrated(), tp=8)
    lacking = {"nothing": {"geometry": None, "hardware": None}, "model": {"hardware": None}, "both": {}}[
        known
    ]
    made = explain(replace(case, **lacking, tp=1 if lacking else 8))
    ids = {one.id for one in made.findings}
    assert {"async_scheduling", "cuda_graphs", "steps_unlike", "lookup_only_longest"} <= ids
    assert ("mla_prefill" in ids) == (known == "both") == ("slow_all_reduce" in ids)
    ruled_out = {one.id for one in made.ruled_out}
    assert ("distinct_experts" in ruled_out) == (known != "nothing")
    assert ("weights_over_link" in ruled_out) == (known == "both")
    assert [name for name in ("model", "hardware") if name in made.unknown] == {
        "nothing": ["model", "hardware"], "model": ["hardware"], "both": [],
    }[known]  # fmt: skip


def test_from_speeds_that_cannot_be_compared_no_cause_is_told():
    made = explained_kimi(refused="No verdict: the client failed its self-check.")
    assert made.findings == made.ruled_out == () and made.refused


def test_a_profiled_all_reduce_is_held_against_the_curve():
    asked = finding(explained_kimi(), "slow_all_reduce")
    slow = finding(explained_kimi(profiled_s={"all_reduce": 6.2e-3}), "slow_all_reduce")
    assert asked and asked.step_s is None and "not profiled" in asked.evidence
    assert slow and slow.step_s and slow.step_s[1] * 1e3 == pytest.approx(2.87, abs=0.01)
    assert "51 µs a call" in slow.evidence and "at 27 µs" in slow.evidence
    assert finding(explained_kimi(profiled_s={"all_reduce": 3.4e-3}), "slow_all_reduce") is None


def test_weights_that_do_not_fit_come_first_and_may_cross():
    made = explained_kimi(tp=4)
    assert made.findings[0].id == "weights_do_not_fit"
    assert "weights_over_link" not in {one.id for one in made.ruled_out}


def test_acceptance_that_is_not_known_may_make_verification_too_dear():
    unknown = tuple(replace(one, acceptance_rate=None) for one in kimi().observations)
    found = finding(explained_kimi(observations=unknown), "verification_too_dear")
    assert found and found.confidence == "medium" and found.title.endswith("perhaps")
    made = explained_kimi(observations=unknown)
    assert "low_acceptance" not in {one.id for one in made.ruled_out}


def test_a_trained_head_takes_time_that_is_told():
    seen = from_speeds("x", 100.0, 110.0, (0.6, 0.6), (1.0, 1.0))
    found = finding(explain(llama(seen, engine="vllm")), "drafter_time")
    assert found and found.confidence == "medium" and found.step_s and found.step_s[1] > 1e-3
    ngram = finding(explained_kimi(), "drafter_time")
    assert ngram and ngram.step_s and ngram.step_s[1] < 2e-3


def test_experts_are_not_ruled_out_where_they_could_do_it():
    faint = tuple(
        Observation(one.name, one.baseline_tpot_s, one.baseline_tpot_s * 1.05, (0.02, 0.1), None)
        for one in kimi().observations
    )
    ids = {one.id for one in explained_kimi(observations=faint).ruled_out}
    assert "distinct_experts" not in ids and "low_acceptance" not in ids


def test_a_dense_model_has_no_experts_to_rule_out():
    seen = Observation("x", 0.010, 0.013, (0.3, 0.3))
    made = explain(llama(seen, geometry=preset("llama-3.1-8b"), hardware=hardware("h100-sxm"), tp=2))
    assert [one.id for one in made.ruled_out] == ["weights_over_link", "low_acceptance"]


def test_what_pays_is_sought_where_the_method_can_be_tried():
    seen = Observation("x", 0.010, 0.013, (0.0, 0.0))
    for method, command in (
        ("ngram", "breakeven replay"),
        ("eagle3", "breakeven forecast --model llama-3.1-8b"),
    ):
        found = finding(explain(llama(seen, method=method)), "verification_too_dear")
        assert found and found.next_command.startswith(command)
