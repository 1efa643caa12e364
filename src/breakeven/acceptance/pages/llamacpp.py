"""llama-server's /metrics. It counts drafts as vLLM does, whether or not speculation is on, and no decode
steps: `n_decode_total` counts calls, in which several requests share a step."""

from __future__ import annotations

from breakeven.acceptance.counters import SpecCounters, possible
from breakeven.acceptance.exposition import Samples, count, fullest, gauge, positions, total
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages.ranks import CANNOT_BE

ENGINE = "llama.cpp"
SOURCE = "llama.cpp /metrics"
PREFIX = "llamacpp:"

_DRAFTS = "llamacpp:spec_decode_num_drafts"
_DRAFTED = "llamacpp:spec_decode_num_draft_tokens"
_ACCEPTED = "llamacpp:spec_decode_num_accepted_tokens"
_POSITIONS = "llamacpp:spec_decode_num_accepted_tokens_per_pos"
_COMPUTED, _CACHED = "llamacpp:prompt_tokens", "llamacpp:prompt_tokens_cached"
_OUTPUT = "llamacpp:tokens_predicted"
_RUNNING, _WAITING = "llamacpp:requests_processing", "llamacpp:requests_deferred"
_USAGE = "llamacpp:kv_cache_usage_ratio"
NAMES = frozenset(
    {_DRAFTS, _DRAFTED, _ACCEPTED, _POSITIONS, _COMPUTED, _CACHED, _OUTPUT, _RUNNING, _WAITING, _USAGE}
)


def read(samples: Samples) -> Page:
    """The page whose lines under NAMES these are."""
    spec = _spec(samples) if _DRAFTS in samples or _DRAFTED in samples else None
    if spec is None and _DRAFTED in samples:
        return Page(ENGINE, SpecCounters(source=SOURCE), _load(samples), notes=(f"the server {CANNOT_BE}",))
    return Page(ENGINE, spec, _load(samples), by_rank={} if spec is None else {"": spec})


def _spec(samples: Samples) -> SpecCounters | None:
    drafts = total(samples, _DRAFTS)
    spread = [count(value) for value in positions(samples, _POSITIONS, "position").get("", ())]
    accepted = tuple(value for value in spread if value is not None)
    told = len(accepted) == len(spread) and (accepted or drafts == 0)
    return possible(
        SpecCounters(
            drafts=drafts,
            drafted_tokens=total(samples, _DRAFTED),
            accepted_tokens=total(samples, _ACCEPTED),
            accepted_per_position=accepted if told else None,
            source=SOURCE,
        )
    )


def _load(samples: Samples) -> Load:
    """It counts prompt tokens without those found in the cache, and no requests."""
    computed, cached = total(samples, _COMPUTED), total(samples, _CACHED)
    looked_up = None if computed is None or cached is None else computed + cached
    return Load(
        prompt_tokens=computed if looked_up is None else looked_up,
        output_tokens=total(samples, _OUTPUT),
        prefix_queries=looked_up,
        prefix_hits=cached,
        running=gauge(samples, _RUNNING),
        waiting=gauge(samples, _WAITING),
        kv_usage=fullest(samples, _USAGE),
    )
