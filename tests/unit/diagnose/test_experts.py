"""The share of a slower step that experts and AllReduce explain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.cost.hardware import hardware
from breakeven.cost.presets import preset
from breakeven.diagnose.causes.experts import CAUSES, all_reduce, expert_coverage, slow_all_reduce
from breakeven.diagnose.evidence import Evidence
from breakeven.explain.case import Case
from breakeven.explain.explain import explain
from breakeven.explain.records import Observation
from breakeven.explain.waterfall import EXPERTS
from tests.unit.diagnose.compared import compared, explained
from tests.unit.diagnose.healthy import healthy
from tests.unit.explain.cases import kimi, llama

PLAIN_S = 0.005


def moe(candidate_s: float, rate: float = 0.1, share: float = 1.0) -> Case:
    """Qwen3-30B-A3B on one device: 8 of 128 experts, a window of 8."""
    return Case(
        model="qwen3-30b-a3b",
        geometry=preset("qwen3-30b-a3b"),
        hardware=hardware("rtx-pro-6000-ws"),
        k=8,
        method="ngram",
        observations=(Observation("chat", PLAIN_S, candidate_s, (rate, rate), (share, share)),),
        engine="llama.cpp",
    )


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence",
    [Evidence(), healthy(), compared(2.0), compared(0.8), explained(moe(PLAIN_S * 0.9))],
    ids=["nothing known", "healthy", "dense", "dense and slow", "faster"],
)
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


def experts_s(case: Case) -> tuple[float, float]:
    part = next(part for part in explain(case).waterfall if part.name == EXPERTS)
    return part.added_s.low, part.added_s.high


@pytest.mark.parametrize("times", [1.0, 1.5, 1.9])
def test_the_share_that_experts_explain(times: float) -> None:
    """A step that takes `times` what the experts add at most, beyond a plain one."""
    low_s, high_s = experts_s(moe(PLAIN_S))
    candidate_s = (PLAIN_S + times * high_s) / 1.8
    assert candidate_s > PLAIN_S
    found = expert_coverage(explained(moe(candidate_s)))
    assert found and found.step_s == pytest.approx((low_s, high_s))
    share = low_s / (times * high_s)
    assert found.confidence == ("high" if share >= 0.5 else "medium")
    assert f"{100 / times:.1f} %" in found.title and "distinct per layer" in found.evidence


def test_the_share_is_that_of_all_that_is_possible() -> None:
    """Between no step that drafts, and all of them with nothing accepted."""
    _, high_s = experts_s(moe(PLAIN_S))
    candidate_s = PLAIN_S + 1.25 * high_s
    seen = Observation("chat", PLAIN_S, candidate_s, (0.0, 0.2), None)
    found = expert_coverage(explained(replace(moe(PLAIN_S), observations=(seen,))))
    assert found and found.confidence == "medium" and "explain 0.0 % to 80.0 % of" in found.title
    drafted = replace(seen, draft_share=(0.5, 1.0))
    found = expert_coverage(explained(replace(moe(PLAIN_S), observations=(drafted,))))
    low_s, _ = experts_s(moe(PLAIN_S))
    least = 0.5 * low_s / (candidate_s * (1 + 0.5 * 8 * 0.2) - PLAIN_S)
    assert found and f"explain {least * 100:.1f} % to 80.0 %" in found.title


def test_several_observations_are_told_as_ranges_over_all() -> None:
    """One step that is wholly explained, and one that is longer: no figure mixes the two."""
    low_s, high_s = experts_s(moe(PLAIN_S))
    near = Observation("near", PLAIN_S, (PLAIN_S + high_s) / 1.8, (0.1, 0.1), (1.0, 1.0))
    far = replace(near, name="far", candidate_tpot_s=(PLAIN_S + 4 * high_s) / 1.8)
    found = expert_coverage(explained(replace(moe(PLAIN_S), observations=(near, far))))
    assert found and f"explain {low_s / high_s / 4 * 100:.1f} % to 100.0 %" in found.title
    assert f"of the {high_s * 1e3:.2f} to {4 * high_s * 1e3:.2f} ms" in found.evidence


def test_experts_that_explain_next_to_nothing_are_not_named() -> None:
    _, high_s = experts_s(moe(PLAIN_S))
    assert expert_coverage(explained(moe((PLAIN_S + 20 * high_s) / 1.8))) is None


def test_steps_that_never_drafted_woke_no_further_experts() -> None:
    assert expert_coverage(explained(moe(PLAIN_S * 1.5, share=0.0))) is None


def test_experts_that_explain_has_ruled_out_are_not_named_again() -> None:
    evidence = explained(kimi())
    assert evidence.explanation
    assert any(one.id == "distinct_experts" for one in evidence.explanation.ruled_out)
    assert expert_coverage(evidence) is None


def test_all_reduce_that_grows_is_shown_with_its_share() -> None:
    small = 0.0002
    seen = Observation("x", 0.013, 0.013 * 1.0 + small, (0.0, 0.0), (1.0, 1.0))
    found = all_reduce(explained(kimi(observations=(seen,))))
    assert found is None or found.id == "all_reduce_growth"
    slower = Observation("x", 0.013, 0.0145, (0.0, 0.0), (1.0, 1.0))
    found = all_reduce(explained(kimi(observations=(slower,))))
    assert found and "AllReduce explains" in found.title
    assert all_reduce(explained(llama(Observation("x", 0.007, 0.009), engine="vllm"))) is None


def test_a_slow_all_reduce_of_the_baseline_is_a_hint_where_something_is_wrong() -> None:
    profiled = {"profiled_s": {"all_reduce": 6.2e-3}}
    assert slow_all_reduce(explained(kimi(**profiled)))
    fast = Observation("x", 0.013, 0.0072, (0.3, 0.3), (1.0, 1.0))
    assert slow_all_reduce(explained(kimi(observations=(fast,), **profiled))) is None
