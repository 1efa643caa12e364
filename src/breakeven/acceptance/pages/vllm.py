"""vLLM's /metrics, of the V1 engine and of V0.

V1 counts drafts, drafted and accepted tokens, and how many drafts were accepted to each position, by engine;
a baseline has none of these counters. Decode steps are not counted under that name, but each step of each
request observes one inter-token latency, whatever number of tokens it emits, and each prefill one time to
first token.

V0 adds to its counters, at each report, the totals since the start: they are sums of sums (vllm#15415), and
no counts. Its acceptance rate is one since the start.
"""

from __future__ import annotations

from dataclasses import replace

from breakeven.acceptance.counters import SpecCounters, possible
from breakeven.acceptance.exposition import (
    Samples,
    count,
    counters,
    gauges,
    positions,
    seconds,
    total,
)
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages.loads import load_of
from breakeven.acceptance.pages.ranks import left_out, summed
from breakeven.acceptance.stated import over_ranks

ENGINE = "vllm"
SOURCE = "vLLM /metrics"
SOURCE_V0 = "vLLM V0 /metrics"
PREFIX = "vllm:"
NOTE_V0 = (
    "vLLM V0 adds running totals to its counters of drafted and accepted tokens (vllm#15415): they count "
    "nothing, and only its acceptance rate since the start is shown"
)

_SPEC = "vllm:spec_decode_num_"
_POSITIONS = f"{_SPEC}accepted_tokens_per_pos"
_COUNTERS = {
    "drafts": f"{_SPEC}drafts",
    "drafted_tokens": f"{_SPEC}draft_tokens",
    "accepted_tokens": f"{_SPEC}accepted_tokens",
}
_V0 = (f"{_SPEC}emitted_tokens", "vllm:spec_decode_efficiency")
_RATE_V0 = "vllm:spec_decode_draft_acceptance_rate"
_OUTPUT = "vllm:generation_tokens"
_FIRST = "vllm:time_to_first_token_seconds_count"
_GAPS = ("vllm:inter_token_latency_seconds_count", "vllm:time_per_output_token_seconds_count")
_GAP_S = ("vllm:inter_token_latency_seconds_sum", "vllm:time_per_output_token_seconds_sum")
"""The second is what the first was called before vLLM 0.11."""
_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_LOAD = {
    "requests": "vllm:request_success",
    "prompt_tokens": "vllm:prompt_tokens",
    "output_tokens": _OUTPUT,
    "preemptions": "vllm:num_preemptions",
    "prefix_queries": "vllm:prefix_cache_queries",
    "prefix_hits": "vllm:prefix_cache_hits",
}
_RUNNING, _WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
NAMES = frozenset(
    (*_COUNTERS.values(), _POSITIONS, *_V0, _RATE_V0, _FIRST, *_GAPS, *_GAP_S, *_USAGE, *_LOAD.values())
) | {_RUNNING, _WAITING}


def read(samples: Samples) -> Page:
    """The page whose lines under NAMES these are."""
    if any(name in samples for name in _V0):
        rate = over_ranks("acceptance_rate", list(gauges(samples, _RATE_V0).values()), SOURCE_V0)
        return Page(ENGINE, SpecCounters(source=SOURCE_V0), _load(samples), (rate,), notes=(NOTE_V0,))
    ranks = _ranks(samples)
    known = {rank: spec for rank, spec in ranks.items() if spec is not None}
    return Page(
        ENGINE,
        summed(known.values(), SOURCE) if ranks else None,
        _load(samples, steps=all(spec.steps is not None for spec in known.values())),
        ranks=max(len(ranks), 1),
        notes=left_out(ranks),
        by_rank=known,
        silent_ranks=len(ranks) - len(known),
    )


def _ranks(samples: Samples) -> dict[str, SpecCounters | None]:
    """By engine; None where one of an engine's counters is no count."""
    tables = {field: counters(samples, name) for field, name in _COUNTERS.items()}
    per_position = positions(samples, _POSITIONS, "position")
    steps, emitted = counters(samples, *_GAPS), _emitted(samples)
    ranks: dict[str, SpecCounters | None] = {}
    for rank in dict.fromkeys((*(rank for table in tables.values() for rank in table), *per_position)):
        given = {field: count(table[rank]) for field, table in tables.items() if rank in table}
        spread = [count(value) for value in per_position.get(rank, ())]
        if None in given.values() or None in spread:
            ranks[rank] = None
            continue
        accepted = tuple(value for value in spread if value is not None)
        spec = SpecCounters(
            **given,
            accepted_per_position=accepted if accepted or not given.get("drafts") else None,
            source=SOURCE,
        )
        ranks[rank] = possible(_with_steps(spec, steps.get(rank), emitted.get(rank)))
    return ranks


def _emitted(samples: Samples) -> dict[str, int]:
    """By engine: tokens but the first of each request, which its prefill gives."""
    output, first = counters(samples, _OUTPUT), counters(samples, _FIRST)
    pairs = {rank: (count(output[rank]), count(first[rank])) for rank in output.keys() & first.keys()}
    return {rank: a - b for rank, (a, b) in pairs.items() if a is not None and b is not None and a >= b}


def _with_steps(spec: SpecCounters, gaps: float | None, emitted: int | None) -> SpecCounters:
    """Gaps are steps unless there are as many as tokens though drafts were accepted: then a version counts
    them by token. A step whose request was cancelled has a draft and no gap."""
    steps = None if gaps is None else count(gaps)
    by_token = steps is not None and emitted is not None and steps >= emitted and bool(spec.accepted_tokens)
    if steps is None or by_token:
        return replace(spec, emitted_tokens=emitted)
    return replace(spec, steps=max(steps, spec.drafts or 0), emitted_tokens=emitted)


def _load(samples: Samples, steps: bool = True) -> Load:
    gap_s, gaps = seconds(samples, *_GAP_S), total(samples, *_GAPS)
    token_s = (gap_s, float(gaps)) if steps and gap_s is not None and gaps is not None else None
    return load_of(samples, _LOAD, _RUNNING, _WAITING, _USAGE, token_s)
