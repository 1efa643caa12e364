"""Warm-up, the client's limits, truncation, restarts, sources that disagree, too few drafts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.diagnose.causes.counting import counters_reset, few_drafts, sources_disagree
from breakeven.diagnose.causes.measurement import OTHERS, VOIDING, client_limited, truncated_reasoning
from breakeven.diagnose.causes.warm_up import warm_up_in_window
from breakeven.diagnose.evidence import Drafting, Evidence
from tests.unit.diagnose.compared import uncosted
from tests.unit.diagnose.healthy import COUNTERS, healthy, log, replies

COMPILING = {"late_compile": (3, "Compiling a graph for dynamic shape takes 12.04 s")}


@pytest.mark.parametrize("cause", (*VOIDING, *OTHERS))
@pytest.mark.parametrize("evidence", [healthy(), Evidence()], ids=["healthy", "nothing known"])
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


def test_a_failed_self_check_is_named_with_its_side() -> None:
    lagged = replies(client_reasons=("the client fell behind: its event loop lagged 40.0 ms (p99)",))
    found = client_limited(healthy(baseline_replies=lagged))
    assert found and found.confidence == "high"
    assert found.evidence.startswith("The baseline: the client fell behind")
    alone = client_limited(Evidence(replies=lagged))
    assert alone and alone.evidence.startswith("The server: ")


@pytest.mark.parametrize(
    ("all_resets", "in_log", "confidence"), [(1, 0, "high"), (2, 1, "high"), (1, 1, "low"), (0, 0, None)]
)
def test_a_restart_between_readings_is_surer_than_one_in_the_log(
    all_resets: int, in_log: int, confidence: str | None
) -> None:
    found = counters_reset(healthy(resets=all_resets, log=log(resets=in_log)))
    assert (found and found.confidence) == confidence


def stopped(**changes: Any) -> Any:
    return replies(**{"stalled": 1, "longest_gap_s": 11.9, **changes})


@pytest.mark.parametrize(
    ("changes", "confidence"),
    [
        ({"log": log(COMPILING)}, "medium"),
        ({"replies": stopped()}, "medium"),
        ({"replies": stopped(), "sequences": 4}, "low"),
        ({"replies": stopped(), "log": log(COMPILING)}, "high"),
        ({"replies": replies(early_tpot_s=0.032)}, "medium"),
        ({"replies": replies(early_tpot_s=0.07)}, "high"),
        ({"replies": replies(early_tpot_s=0.07, early_same_prompts=False)}, "low"),
        ({"baseline_replies": replies(early_tpot_s=0.032)}, "medium"),
    ],
)
def test_signs_of_a_warm_up(changes: dict[str, Any], confidence: str) -> None:
    found = warm_up_in_window(healthy(**changes))
    assert found and found.confidence == confidence


def test_one_line_among_thousands_of_reports_is_a_hiccup() -> None:
    once = {"late_compile": (1, "torch.compile takes 0.10 s in total")}
    found = warm_up_in_window(healthy(log=log(once, periods=3000)))
    assert found and found.confidence == "low"
    slow, fast = (uncosted(gain, COUNTERS, log=log(COMPILING)) for gain in (0.8, 1.6))
    assert warm_up_in_window(slow) and warm_up_in_window(fast) is None


def test_times_of_a_client_that_failed_are_no_sign() -> None:
    lagged = stopped(early_tpot_s=0.07, client_reasons=("the client fell behind",))
    assert warm_up_in_window(healthy(replies=lagged)) is None
    found = warm_up_in_window(healthy(replies=lagged, log=log(COMPILING)))
    assert found and found.confidence == "medium" and "stood still" not in found.evidence


def test_the_figures_of_a_warm_up_are_said() -> None:
    seen = stopped(early_tpot_s=0.05)
    found = warm_up_in_window(healthy(replies=seen, log=log(COMPILING)))
    assert found
    for figure in ("3 lines", "takes 12.04 s", "50.0 ms", "20.0 ms", "2.50×", "1 of 24 replies", "11.9 s"):
        assert figure in found.evidence


@pytest.mark.parametrize(
    "seen",
    [
        replies(early_tpot_s=0.029),
        replies(early_tpot_s=0.2, late_tpot_s=None),
        stopped(stalled=20),
    ],
    ids=["a little slower", "nothing to compare with", "most replies stop, which is no warm-up"],
)
def test_what_is_no_warm_up(seen: Any) -> None:
    assert warm_up_in_window(healthy(replies=seen)) is None


@pytest.mark.parametrize(("engine", "method"), [("vllm", "suffix"), ("llama.cpp", "ngram-mod")])
def test_a_drafter_that_knows_repeats_is_no_warm_up(engine: str, method: str) -> None:
    seen = replies(early_tpot_s=0.05)
    learns = healthy(replies=seen, engine=engine, drafting=Drafting(method, 4))
    assert warm_up_in_window(learns) is None
    assert warm_up_in_window(replace(learns, drafting=Drafting("ngram-simple", 4)))
    baseline = replace(learns, replies=None, baseline_replies=seen)
    assert warm_up_in_window(baseline), "a baseline learns nothing"


@pytest.mark.parametrize(
    ("candidate", "baseline", "confidence"),
    [(0, 0, None), (2, 2, None), (3, 3, "medium"), (12, 12, "high"), (2, 0, "high"), (0, 12, "high")],
)
def test_truncated_reasoning(candidate: int, baseline: int, confidence: str | None) -> None:
    sides = replies(truncated_in_reasoning=candidate), replies(truncated_in_reasoning=baseline)
    found = truncated_reasoning(healthy(replies=sides[0], baseline_replies=sides[1]))
    assert (found and found.confidence) == confidence
    if found:
        assert f"{candidate} of 24" in found.evidence and f"{baseline} of 24" in found.evidence
        assert found.next_command.endswith("--max-tokens 1024")
        assert ("differ" in found.evidence) == (candidate != baseline)


def test_failed_requests_are_no_replies() -> None:
    assert truncated_reasoning(healthy(replies=replies(failed=24), baseline_replies=None)) is None
    few = replies(failed=20, truncated_in_reasoning=3)
    found = truncated_reasoning(healthy(replies=few, baseline_replies=None))
    assert found and "3 of 4" in found.evidence


def page(**changes: Any) -> SpecCounters:
    return replace(COUNTERS, **{"steps": None, "source": "vLLM /metrics", **changes})


@pytest.mark.parametrize(
    ("other", "confidence", "said"),
    [
        (page(), None, ""),
        (page(drafted_tokens=6500, accepted_tokens=3260), None, ""),
        (
            page(drafted_tokens=12800, accepted_tokens=6400, drafts=3200),
            "low",
            "Drafted tokens: 6,400 by vLLM metrics in the reply, 12,800 by",
        ),
        (page(drafted_tokens=12800, accepted_tokens=4000), "medium", "31.2 % by vLLM /metrics"),
        (page(drafts=3200), "low", "Steps that drafted: 1,600 by"),
        (page(drafted_tokens=None, accepted_tokens=None, drafts=None), None, ""),
        (page(drafted_tokens=12, accepted_tokens=1, drafts=3), "low", "12 by vLLM /metrics"),
    ],
)
def test_sources_beside_each_other(other: SpecCounters, confidence: str | None, said: str) -> None:
    found = sources_disagree(healthy(other_sources=(other,)))
    assert (found and found.confidence) == confidence
    assert said in (found.evidence if found else "")


def test_counts_of_a_log_are_of_its_own_periods() -> None:
    logged = page(source="vLLM log", drafted_tokens=3000, accepted_tokens=1500, drafts=750)
    assert sources_disagree(healthy(other_sources=(logged,))) is None
    found = sources_disagree(healthy(other_sources=(replace(logged, accepted_tokens=600),)))
    assert found and "20.0 % by vLLM log" in found.evidence and "rafted tokens" not in found.evidence


@pytest.mark.parametrize(
    ("changes", "confidence"),
    [
        ({"drafts": 99, "drafted_tokens": 396, "accepted_tokens": 200}, "low"),
        ({"drafts": 41, "drafted_tokens": 164, "accepted_tokens": 82, "steps": None}, "medium"),
        ({"drafts": 41, "drafted_tokens": 164, "accepted_tokens": 82, "steps": 90}, "medium"),
        ({"drafts": None, "drafted_tokens": 60, "accepted_tokens": 20, "steps": None}, "medium"),
        ({"drafts": 100, "drafted_tokens": 400, "accepted_tokens": 20}, None),
        ({"drafts": None}, None),
        ({"drafts": 0, "drafted_tokens": 0, "accepted_tokens": 0}, None),
        ({"drafts": 12, "drafted_tokens": None, "accepted_tokens": None}, None),
    ],
)
def test_few_drafts(changes: dict[str, Any], confidence: str | None) -> None:
    found = few_drafts(healthy(counters=replace(COUNTERS, **changes)))
    assert (found and found.confidence) == confidence


def test_how_little_few_drafts_tell() -> None:
    counted = replace(COUNTERS, drafts=49, drafted_tokens=196, accepted_tokens=98, steps=90)
    found = few_drafts(healthy(counters=counted))
    assert (
        found
        and "49 drafts, 50.0 % accepted: so few tell a share to within 14 percentage points" in found.evidence
    )


def test_compilation_before_the_first_request_is_part_of_a_start() -> None:
    assert warm_up_in_window(healthy(log=log({"compile": (9, "x"), "graph_capture": (1, "y")}))) is None
    late = healthy(log=log({"late_compile": (2, "x" * 1000), "late_graph_capture": (1, "y")}))
    found = warm_up_in_window(late)
    assert found and "3 lines of its log" in found.evidence and len(found.evidence) < 400
