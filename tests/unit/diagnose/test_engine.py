"""What an engine does otherwise once it speculates."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.diagnose.causes.engine import (
    CAUSES,
    async_scheduling,
    attention_backend,
    cuda_graphs,
    mla_prefill,
    model_runner,
)
from breakeven.diagnose.causes.left_over import left_overs
from breakeven.diagnose.evidence import Drafting, Evidence
from tests.unit.diagnose.compared import OFF, compared, counted, explained, started, uncosted
from tests.unit.explain.cases import kimi

ON, NOT = {"async_scheduling": "on"}, {"async_scheduling": "off"}
DOWN = (
    "WARNING CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode for attention backend "
    "FlashInferBackend; setting cudagraph_mode=PIECEWISE"
)
SLOW = 1.1
"""Where the counts of `healthy` and the curve give about 2."""


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence",
    [Evidence(), compared(2.0), compared(2.0, facts=NOT, baseline_facts=ON, log=started(OFF))],
    ids=["nothing known", "healthy", "healthy, and off"],
)
def test_nothing_is_blamed_while_steps_take_as_long_as_they_should(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


@pytest.mark.parametrize("baseline", [ON, {}], ids=["on before", "no baseline log"])
def test_async_scheduling_that_the_log_says_is_lost(baseline: dict[str, str]) -> None:
    found = async_scheduling(compared(SLOW, facts=NOT, baseline_facts=baseline, log=started(OFF)))
    assert found and found.confidence == "high" and found.step_s
    assert "Async scheduling not supported with ngram-based speculative decoding" in found.evidence
    assert "WARNING" not in found.evidence
    assert ("the baseline's says that it is on" in found.evidence) == bool(baseline)
    assert (
        found.title.endswith("in the candidate only" if baseline else "is off") and ".." not in found.evidence
    )


@pytest.mark.parametrize(
    ("facts", "baseline"), [(ON, ON), (ON, {}), (NOT, NOT)], ids=["kept", "on", "off in both"]
)
def test_async_scheduling_is_dropped_where_a_log_rules_it_out(
    facts: dict[str, str], baseline: dict[str, str]
) -> None:
    assert async_scheduling(compared(SLOW, facts=facts, baseline_facts=baseline)) is None


@pytest.mark.parametrize(("facts", "confidence"), [({}, "medium"), ({"version": "0.32"}, "low")])
def test_without_a_word_in_the_log_it_is_less_sure(facts: dict[str, str], confidence: str) -> None:
    found = async_scheduling(compared(SLOW, facts=facts))
    assert found and found.confidence == confidence


@pytest.mark.parametrize(("rates", "confidence"), [((0.2, 0.1), "medium"), ((0.7, 0.6), "high")])
def test_what_may_be_of_the_acceptance_is_less_sure(rates: tuple[float, ...], confidence: str) -> None:
    evidence = uncosted(0.8, counted(rates), facts=NOT, log=started(OFF))
    found = async_scheduling(evidence)
    assert found and found.confidence == confidence


def test_what_a_log_alone_tells_may_cost() -> None:
    found = async_scheduling(Evidence(engine="vllm", facts=NOT, log=started(OFF)))
    assert found and found.confidence == "medium" and found.step_s is None


@pytest.mark.parametrize(
    ("now", "before", "title"),
    [
        ("PIECEWISE", "FULL_AND_PIECEWISE", "from FULL_AND_PIECEWISE to PIECEWISE"),
        ("NONE", "FULL", "from FULL to NONE"),
    ],
)
def test_graphs_that_are_lost(now: str, before: str, title: str) -> None:
    evidence = compared(SLOW, facts={"cuda_graphs": now}, baseline_facts={"cuda_graphs": before})
    found = cuda_graphs(evidence)
    assert found and found.confidence == "high" and title in found.title


def test_the_log_of_the_candidate_alone_tells_a_downgrade_that_speculation_brings() -> None:
    found = cuda_graphs(compared(SLOW, facts={"cuda_graphs": "PIECEWISE"}, log=started(DOWN)))
    assert found and found.confidence == "high" and "not supported with spec-decode" in found.evidence
    found = cuda_graphs(compared(SLOW, facts={"cuda_graphs": "PIECEWISE"}))
    assert found and found.confidence == "medium" and "is not known" in found.evidence


@pytest.mark.parametrize(
    ("now", "before"),
    [("PIECEWISE",) * 2, ("FULL_AND_PIECEWISE", None), ("NONE", "NONE"), ("FULL_DECODE_ONLY", "FULL")],
)
def test_graphs_that_are_kept_are_not_blamed(now: str, before: str | None) -> None:
    baseline = {"cuda_graphs": before} if before else {}
    assert cuda_graphs(compared(SLOW, facts={"cuda_graphs": now}, baseline_facts=baseline)) is None


def test_graphs_are_checked_where_no_log_tells() -> None:
    found = cuda_graphs(compared(SLOW))
    assert found and found.confidence == "medium"


BACKENDS = {
    "facts": {"attention_backend": "FLASHINFER"},
    "baseline_facts": {"attention_backend": "FLASH_ATTN"},
}


def test_another_attention_backend() -> None:
    found = attention_backend(compared(SLOW, **BACKENDS))
    assert found and found.confidence == "high" and "FLASH_ATTN → FLASHINFER" in found.title
    same = {**BACKENDS, "facts": BACKENDS["baseline_facts"]}
    assert attention_backend(compared(SLOW, **same)) is None
    assert attention_backend(compared(2.0, **BACKENDS)) is None


def test_without_a_cost_or_a_log_what_to_check_is_said() -> None:
    good = counted((0.9,))
    evidence = uncosted(0.6, good, drafting=Drafting("mtp", 1))
    for cause in (cuda_graphs, attention_backend):
        found = cause(evidence)
        assert found and found.confidence == "low" and "<baseline-log> <candidate-log>" in found.next_command
    assert cuda_graphs(uncosted(0.6, good, engine="sglang")) is None
    assert cuda_graphs(uncosted(1.6, good)) is None


@pytest.mark.parametrize(
    ("backend", "confidence"), [("TRITON_MLA", "high"), ("FLASHMLA", None), (None, "medium")]
)
def test_latent_attention_is_blamed_by_its_backend(backend: str | None, confidence: str | None) -> None:
    facts = {} if backend is None else {"attention_backend": backend}
    found = mla_prefill(explained(kimi(), facts=facts))
    assert (found and found.confidence) == confidence


def test_another_model_runner() -> None:
    runners = {"facts": {"model_runner": "V1"}, "baseline_facts": {"model_runner": "V2"}}
    found = model_runner(compared(SLOW, **runners))
    assert found and found.confidence == "high" and "V2 → V1" in found.title
    assert model_runner(compared(SLOW, facts={"model_runner": "V1"})) is None
    assert model_runner(compared(2.0, **runners)) is None


def test_of_several_differences_none_is_sure_nor_has_all_the_time() -> None:
    both = {
        "facts": {**NOT, "cuda_graphs": "PIECEWISE"},
        "baseline_facts": {**ON, "cuda_graphs": "FULL"},
    }
    evidence = compared(SLOW, **both)
    most = max(one.most_s for one in left_overs(evidence)) * 1e3
    for cause in (async_scheduling, cuda_graphs):
        found = cause(evidence)
        assert found and found.confidence == "medium" and found.step_s is None
        assert f"2 such differences are logged: together up to {most:.2f} ms of a step" in found.evidence
        assert found.evidence.count("together") == 1


def test_a_backend_that_mla_prefill_tells_of_is_one_difference() -> None:
    facts, before = {"attention_backend": "TRITON_MLA"}, {"attention_backend": "FLASHMLA"}
    evidence = explained(kimi(), facts=facts, baseline_facts=before)
    found = mla_prefill(evidence)
    assert found and found.confidence == "high" and attention_backend(evidence) is None


def test_a_long_line_is_cut() -> None:
    found = async_scheduling(compared(SLOW, facts=NOT, log=started(OFF + "x" * 1000)))
    assert found and len(found.evidence) < 700 and "…" in found.evidence
