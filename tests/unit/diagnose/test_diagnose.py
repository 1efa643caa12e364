"""The order of findings, and what is said to be unknown."""

from dataclasses import replace

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.stated import stated
from breakeven.diagnose.diagnose import by_confidence, diagnose
from breakeven.diagnose.evidence import Drafting, Evidence, Replies
from breakeven.diagnose.gather import gather
from breakeven.diagnose.readings import Readings
from breakeven.diagnose.unknown import unknown
from breakeven.explain.records import Finding, ranked
from tests.unit.diagnose.compared import DENSE, explained
from tests.unit.diagnose.healthy import healthy
from tests.unit.explain.cases import kimi


def finding(name: str, confidence: str, seconds: float | None = None) -> Finding:
    step_s = None if seconds is None else (0.0, seconds)
    return Finding(name, name, "", confidence, "", "", step_s)  # type: ignore[arg-type]


def test_findings_are_ranked_by_confidence_then_seconds_then_as_they_come():
    found = [
        finding("a", "low", 0.9),
        finding("b", "medium"),
        finding("c", "high"),
        finding("d", "medium", 0.002),
        finding("e", "medium", 0.003),
        finding("f", "medium"),
    ]
    assert "".join(one.id for one in ranked(found)) == "cedbfa"


def test_what_voids_the_others_comes_before_them_at_equal_confidence():
    voiding = [finding("v", "medium"), finding("w", "low", 0.001)]
    others = [finding("a", "high"), finding("b", "medium", 0.9), finding("c", "low", 0.9)]
    assert "".join(one.id for one in by_confidence(voiding, others)) == "avbwc"


def test_on_a_slowdown_what_the_engine_does_otherwise_comes_before_rare_drafts_and_cut_replies():
    """At equal confidence, of the published experiment."""
    seen = replace(
        explained(kimi()),
        drafting=Drafting("ngram", 5, 4, 4, True),
        replies=Replies(5, truncated_in_reasoning=1),
    )
    medium = [one.id for one in diagnose(seen).findings if one.confidence == "medium"]
    assert medium[:3] == ["async_scheduling", "cuda_graphs", "mla_prefill"]
    assert {"lookup_only_longest", "truncated_reasoning"} <= set(medium)


def test_nothing_is_found_where_nothing_is_known():
    made = diagnose(Evidence())
    assert made.findings == ()
    assert {"window", "acceptance_rate", "speeds", "start", "replay"} <= made.unknown.keys()


def test_what_is_known_is_not_asked_for():
    counters = SpecCounters(1000, 400, 2000, 800, (400, 250, 100, 40, 10), "vLLM /metrics")
    facts = {"async_scheduling": "on"}
    known = Evidence(Drafting("eagle3", 5), "vllm", counters=counters, stated=stated(counters), facts=facts)
    assert set(unknown(known)) == {"speeds"}


def test_a_draft_share_that_is_not_counted_is_asked_for_with_the_engines_flag():
    counters = SpecCounters(None, 400, 2000, 800, source="vLLM /metrics")
    asked = unknown(Evidence(Drafting("ngram", 5), "vllm", counters=counters, stated=stated(counters)))
    assert "acceptance_rate" not in asked
    assert "--enable-per-request-metrics" in asked["draft_share"]


def test_what_explain_does_not_know_is_in_it():
    made = diagnose(gather(Readings(observations=kimi().observations, case=kimi())))
    assert "verify_ms" in made.unknown and "speeds" not in made.unknown
    assert "breakeven calibrate" in made.unknown["verify_ms"]


def test_a_cost_without_its_batch_is_asked_for():
    assert "--concurrency" in unknown(healthy(cost=DENSE, sequences=None))["sequences"]
    assert "sequences" not in unknown(healthy(cost=DENSE)) | unknown(healthy(sequences=None))
