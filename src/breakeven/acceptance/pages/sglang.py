"""SGLang's /metrics. It counts verify calls of finished requests, each a step that drafted, and their tokens;
drafted and accepted tokens it does not count. Acceptance length and rate are gauges of each data-parallel
rank's latest interval of decode steps, 0 where it made none."""

from __future__ import annotations

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.exposition import Samples, gauges, total
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages.loads import load_of
from breakeven.acceptance.stated import Stated, over_ranks
from breakeven.acceptance.steps import emitted_of

ENGINE = "sglang"
SOURCE = "SGLang /metrics"
LATEST = "SGLang /metrics, latest interval"
PREFIX = "sglang:"
NOTE = (
    "SGLang counts the verify calls of finished requests, and drafts in every decode step: its steps are "
    "taken to be its drafts"
)

_VERIFIED = "sglang:spec_verify_calls"
_GAUGES = {
    "acceptance_rate": "sglang:spec_accept_rate",
    "mean_acceptance_length": "sglang:spec_accept_length",
}
_LOAD = {
    "requests": "sglang:num_requests",
    "prompt_tokens": "sglang:prompt_tokens",
    "output_tokens": "sglang:generation_tokens",
    "preemptions": "sglang:num_retracted_requests",
    "prefix_queries": "sglang:prompt_tokens",
    "prefix_hits": "sglang:cached_tokens",
}
_RUNNING, _WAITING, _USAGE = "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage"
NAMES = frozenset((_VERIFIED, *_GAUGES.values(), *_LOAD.values(), _RUNNING, _WAITING, _USAGE))


def read(samples: Samples) -> Page:
    """The page whose lines under NAMES these are."""
    load = _load(samples)
    spec = _spec(samples, load)
    counted = spec is not None and spec.drafts is not None
    lengths = gauges(samples, _GAUGES["mean_acceptance_length"])
    return Page(
        ENGINE,
        spec,
        load,
        tuple(_reported(samples, name) for name in _GAUGES if _speculates(samples)),
        ranks=max(len(lengths), len(gauges(samples, _RUNNING)), 1),
        notes=(NOTE,) if counted else (),
        by_rank={"": spec} if spec is not None and counted else {},
        silent_ranks=sum(length is None for length in lengths.values()),
    )


def _speculates(samples: Samples) -> bool:
    """Without speculation the gauges are there, and 0."""
    return any(sample.value > 0 for name in _GAUGES.values() for sample in samples.get(name, ()))


def _spec(samples: Samples, load: Load) -> SpecCounters | None:
    """The counter appears with its first call."""
    verified = total(samples, _VERIFIED)
    if verified is None:
        return SpecCounters(source=SOURCE) if _speculates(samples) else None
    emitted = None if load.requests is None else emitted_of(load.output_tokens, load.requests)
    return SpecCounters(steps=verified, drafts=verified, source=SOURCE, emitted_tokens=emitted)


def _reported(samples: Samples, name: str) -> Stated:
    """A length below 1 is none; of a rank without one, neither is the rate."""
    lengths = gauges(samples, _GAUGES["mean_acceptance_length"])
    ranks = gauges(samples, _GAUGES[name])
    values = [value if (lengths.get(rank) or 0) >= 1 else None for rank, value in ranks.items()]
    return over_ranks(name, values, LATEST)


def _load(samples: Samples) -> Load:
    """Its inter-token latencies are by token, not by step: no `token_s`."""
    return load_of(samples, _LOAD, _RUNNING, _WAITING, (_USAGE,))
