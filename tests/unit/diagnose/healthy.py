"""Evidence of servers with nothing wrong, to be spoilt one thing at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.diagnose.evidence import Drafting, Evidence, Replies, Traffic

COUNTERS = SpecCounters(2400, 1600, 6400, 3200, (1300, 900, 600, 400), "vLLM metrics in the reply")
LOAD = Load(
    requests=24,
    prompt_tokens=9600,
    output_tokens=6000,
    preemptions=0,
    prefix_queries=9600,
    prefix_hits=4800,
    running=1,
    waiting=0,
    kv_usage=0.4,
)
REPLIES = Replies(
    requests=24,
    checked_for_loops=24,
    checked_tokens=6000,
    max_tokens=512,
    early_tpot_s=0.021,
    late_tpot_s=0.020,
    early_requests=4,
    longest_gap_s=0.09,
    median_gap_s=0.03,
    prefix_hit_rate=0.5,
)


def log(events: Mapping[str, tuple[int, str]] | None = None, **changes: Any) -> LogSummary:
    """Of a vLLM that says nothing unusual."""
    counted = replace(COUNTERS, steps=None, source="vLLM log")
    made = LogSummary("vllm", "vLLM 0.32", 4000, 12, counted, (), None, None, (), events or {})
    return replace(made, **changes)


def healthy(**changes: Any) -> Evidence:
    """A candidate and its baseline, measured with the same prompts; all sources agree."""
    made = Evidence(
        drafting=Drafting("ngram", 4, 2, 4),
        engine="vllm",
        version="0.32",
        counters=COUNTERS,
        other_sources=(replace(COUNTERS, steps=None, source="vLLM /metrics"),),
        baseline_log=log(counters=None),
        log=log(),
        traffic=Traffic(LOAD, requests=24, output_tokens=6000, seconds=120.0),
        baseline_traffic=Traffic(LOAD, requests=24, output_tokens=6000, seconds=140.0),
        replies=REPLIES,
        baseline_replies=REPLIES,
        sequences=1,
    )
    return replace(made, **changes)


def replies(**changes: Any) -> Replies:
    return replace(REPLIES, **changes)


def traffic(requests: int | None = 24, output_tokens: int | None = 6000, **load: Any) -> Traffic:
    """`requests` and `output_tokens` are those asked; the load is what the server counts."""
    return Traffic(replace(LOAD, **load), requests, output_tokens, 120.0)
