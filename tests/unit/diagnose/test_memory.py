"""A KV cache that is full, and a prefix cache that finds less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.acceptance.load import Load
from breakeven.acceptance.logs.summary import LogStatus
from breakeven.diagnose.causes.memory import CAUSES, fewer_prefix_hits, kv_cache_pressure
from breakeven.diagnose.evidence import Evidence, Traffic
from tests.unit.diagnose.compared import uncosted
from tests.unit.diagnose.healthy import COUNTERS, healthy, log, replies, traffic

PREEMPTED = {"preemption": (2, "Sequence group 7 is preempted by RECOMPUTE mode")}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("evidence", [healthy(), Evidence()], ids=["healthy", "nothing known"])
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


@pytest.mark.parametrize(
    ("changes", "confidence", "said"),
    [
        ({"traffic": traffic(preemptions=9)}, "high", "9 preemptions counted"),
        ({"traffic": Traffic(Load(preemptions=1))}, "medium", "1 preemption counted"),
        ({"traffic": traffic(preemptions=1)}, "low", "1 preemption counted"),
        ({"log": log(PREEMPTED)}, "medium", "2 lines of its log"),
        ({"log": log(PREEMPTED, periods=3000)}, "low", "2 lines of its log"),
        ({"traffic": traffic(kv_usage=0.99, waiting=3.0)}, "medium", "99.0 % of the cache in use, 3 waiting"),
        ({"traffic": traffic(kv_usage=0.99)}, "low", "99.0 % of the cache in use"),
        ({"baseline_traffic": traffic(preemptions=9)}, "high", "The baseline: 9 preemptions"),
    ],
)
def test_signs_of_pressure(changes: dict[str, Any], confidence: str, said: str) -> None:
    found = kv_cache_pressure(healthy(**changes))
    assert found and found.confidence == confidence and said in found.evidence


def test_the_title_says_no_more_than_was_seen() -> None:
    preempted = kv_cache_pressure(healthy(traffic=traffic(preemptions=9)))
    full = kv_cache_pressure(healthy(traffic=traffic(preemptions=9, kv_usage=0.97)))
    told = kv_cache_pressure(healthy(log=log({"kv_cache_full": (1, "KV cache pool is full")})))
    assert preempted and preempted.title == "Requests were preempted"
    assert full and told and {full.title, told.title} == {"The KV cache is full"}


def test_a_preemption_costs_a_faster_server_nothing() -> None:
    once = log(PREEMPTED, periods=3000)
    assert kv_cache_pressure(uncosted(1.6, COUNTERS, log=once)) is None
    assert kv_cache_pressure(uncosted(0.8, COUNTERS, log=once))
    often = kv_cache_pressure(uncosted(1.6, COUNTERS, traffic=traffic(preemptions=9)))
    assert often and often.confidence == "high"


def test_requests_that_wait_for_a_place_in_the_batch_are_no_pressure() -> None:
    assert kv_cache_pressure(healthy(traffic=traffic(waiting=12.0, kv_usage=0.3))) is None
    assert kv_cache_pressure(healthy(traffic=traffic(waiting=12.0, kv_usage=None, preemptions=None))) is None


def test_the_prefix_cache_of_the_replies() -> None:
    found = fewer_prefix_hits(healthy(replies=replies(prefix_hit_rate=0.3)))
    assert found and "50.0 %" in found.evidence and "30.0 %" in found.evidence
    assert fewer_prefix_hits(healthy(replies=replies(prefix_hit_rate=0.46))) is None
    assert fewer_prefix_hits(healthy(replies=replies(prefix_hit_rate=0.9))) is None, "more is no harm"


def test_the_prefix_cache_of_the_page_counts_where_replies_tell_nothing() -> None:
    unknown = replies(prefix_hit_rate=None)
    found = fewer_prefix_hits(healthy(replies=unknown, traffic=traffic(prefix_hits=960)))
    assert found and "10.0 %" in found.evidence
    none = traffic(prefix_queries=0, prefix_hits=0)
    assert fewer_prefix_hits(healthy(replies=unknown, traffic=none)) is None


def state(**changes: Any) -> Any:
    return log(status=replace(LogStatus(12, 3.0, 0, 0.6, 0.5, 80.0), **changes))


def test_a_log_tells_of_pressure_where_there_is_no_page() -> None:
    full = healthy(traffic=None, log=state(most_kv_usage=0.998, most_waiting=7))
    found = kv_cache_pressure(full)
    assert found and found.confidence == "medium"
    assert "99.8 % of the cache in use, 7 waiting" in found.evidence
    assert kv_cache_pressure(healthy(traffic=None, log=state())) is None


def test_the_prefix_cache_of_the_logs_comes_last() -> None:
    logs = {"baseline_log": state(), "log": state(prefix_hit_rate=0.1)}
    assert fewer_prefix_hits(healthy(**logs)) is None, "the replies tell, and they agree"
    alone = healthy(**logs, replies=None, baseline_replies=None, traffic=None)
    found = fewer_prefix_hits(alone)
    assert found and found.confidence == "low" and "10.0 % with it, as the logs tell" in found.evidence
