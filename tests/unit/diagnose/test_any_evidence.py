"""Whatever is known, or is not, no cause stumbles over it or prints what is unknown."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.logs.lines import EVENTS
from breakeven.acceptance.logs.summary import LogDeath, LogStatus, LogSummary
from breakeven.diagnose.causes import CAUSES
from breakeven.diagnose.evidence import Drafting, Evidence, Replies, Traffic
from tests.unit.diagnose.test_causes import evidences as priced_evidences

COUNT = st.none() | st.integers(0, 3000)
FEW = st.integers(0, 30)
SHARE = st.none() | st.floats(0, 1)
SECONDS = st.none() | st.floats(1e-6, 1e4)

counters = st.builds(
    SpecCounters,
    steps=COUNT,
    drafts=COUNT,
    drafted_tokens=COUNT,
    accepted_tokens=COUNT,
    source=st.sampled_from(["page", "log", "replies"]),
)
loads = st.builds(
    Load,
    requests=COUNT,
    output_tokens=COUNT,
    preemptions=COUNT,
    prefix_queries=COUNT,
    prefix_hits=COUNT,
    waiting=COUNT,
    kv_usage=SHARE,
)
windows = st.none() | st.builds(Traffic, loads, COUNT, COUNT, SECONDS)
statuses = st.none() | st.builds(
    LogStatus, st.just(4), most_waiting=COUNT, most_kv_usage=SHARE, prefix_hit_rate=SHARE
)
times = st.none() | st.just("11-29 11:18:30")
deaths = st.none() | st.builds(
    LogDeath,
    times=st.integers(1, 3),
    line=st.sampled_from(["EngineCore encountered a fatal error.", "", "x.service: Main process exited"]),
    at=times,
    seen=times,
    lines=st.lists(st.sampled_from(["ValueError: odd.", "CUDA error", "Killed", "a line"])).map(tuple),
    goes_on=st.booleans(),
)
told = st.dictionaries(st.sampled_from(list(EVENTS)), st.tuples(st.integers(1, 9), st.just("a line" * 40)))


@st.composite
def logs(draw: st.DrawFn) -> LogSummary | None:
    return LogSummary(
        "vllm",
        "vLLM 0.32",
        lines=9,
        periods=1,
        counters=draw(st.none() | counters),
        stated=(),
        first=None,
        last=None,
        facts=(),
        events=draw(told),
        resets=draw(st.integers(0, 3)),
        status=draw(statuses),
        death=draw(deaths),
    )


answers = st.none() | st.builds(
    Replies,
    count_drafts=st.booleans(),
    requests=st.integers(0, 60),
    failed=FEW,
    looping=st.lists(st.text(), max_size=3).map(tuple),
    checked_for_loops=FEW,
    looping_tokens=FEW,
    checked_tokens=FEW,
    loop_periods=st.sampled_from([None, (1, 4), (2, 2)]),
    truncated_in_reasoning=FEW,
    max_tokens=COUNT,
    early_tpot_s=SECONDS,
    late_tpot_s=SECONDS,
    early_requests=FEW,
    early_same_prompts=st.booleans(),
    longest_gap_s=st.floats(1e-6, 1e4),
    median_gap_s=st.floats(1e-6, 1e4),
    stalled=FEW,
    client_reasons=st.lists(st.just("it lagged"), max_size=2).map(tuple),
    prefix_hit_rate=SHARE,
)
evidences = st.builds(
    Evidence,
    drafting=st.builds(
        Drafting, st.sampled_from(["ngram", "suffix", "eagle3", "x"]), st.sampled_from([None, 1, 8])
    ),
    engine=st.sampled_from(["vllm", "sglang", "llama.cpp", "another", None]),
    counters=st.none() | counters,
    other_sources=st.lists(counters, max_size=2).map(tuple),
    resets=st.integers(0, 3),
    ranks=st.integers(1, 8),
    silent_ranks=st.integers(0, 8),
    log=st.none() | logs(),
    baseline_log=st.none() | logs(),
    traffic=windows,
    baseline_traffic=windows,
    replies=answers,
    baseline_replies=answers,
    sequences=st.sampled_from([1, 2.5, 64]),
)


@st.composite
def together(draw: st.DrawFn) -> Evidence:
    """Speeds, costs and replays of the one, with what the other knows of replies, traffic and logs."""
    spoilt, priced = draw(evidences), draw(priced_evidences())
    names = ("log", "baseline_log", "traffic", "baseline_traffic", "replies", "baseline_replies")
    others = {name: getattr(spoilt, name) for name in (*names, "other_sources", "ranks", "silent_ranks")}
    return replace(priced, **others)


@given(evidences | together())
def test_no_evidence_is_too_little_or_too_odd(evidence: Evidence) -> None:
    for finding in (found for cause in CAUSES if (found := cause(evidence)) is not None):
        said = finding.evidence + finding.title + finding.check
        assert not re.search(r"None(?! of the \d)|nan|inf |–", said)
        assert finding.check.endswith(".") and not finding.evidence.endswith(".")
