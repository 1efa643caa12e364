"""TensorRT-LLM's metrics. trtllm-serve has two pages.

`/prometheus/metrics` holds totals: by draft position for finished requests, where the server was started with
`return_perf_metrics`; over all iterations, without positions, where it keeps iteration statistics.

`/metrics` is a JSON list of iterations, which forgets them as it is read: it holds no total.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from operator import ge
from typing import Any

import orjson

from breakeven.acceptance.counters import SpecCounters, possible
from breakeven.acceptance.exposition import Samples, count, counters, gauges, positions, total
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages.loads import load_of
from breakeven.acceptance.stated import Stated, over_ranks

ENGINE = "tensorrt-llm"
SOURCE = "TensorRT-LLM /prometheus/metrics"
LATEST = "TensorRT-LLM, latest iteration"
PREFIX = "trtllm_"
TOTALS_AT = "/prometheus/metrics"
NOTE = (
    "the /metrics of trtllm-serve is of single iterations and forgets them as it is read: totals are at "
    f"{TOTALS_AT}, where the server was started with return_perf_metrics: true"
)
UNCOUNTED = SpecCounters(source=SOURCE)
"""Of a page that speaks of speculation, and holds no counts of it that can be."""
DOUBTED = "its totals of {kind} contradict themselves, or are no counts (NaN, below 0), and are left out"

_DRAFTED, _ACCEPTED = "trtllm_spec_decode_num_draft_tokens", "trtllm_spec_decode_num_accepted_tokens"
_DRAFTED_AT, _ACCEPTED_AT = "trtllm_spec_decode_drafted_tokens", "trtllm_spec_decode_accepted_tokens"
_LENGTH = "trtllm_spec_decode_acceptance_length"
_LOAD = {
    "requests": "trtllm_request_success",
    "prompt_tokens": "trtllm_prompt_tokens",
    "output_tokens": "trtllm_generation_tokens",
    "prefix_queries": "trtllm_prompt_tokens",
    "prefix_hits": "trtllm_prompt_cached_tokens",
}
_RUNNING, _WAITING = "trtllm_num_requests_running", "trtllm_num_requests_waiting"
_USAGE = "trtllm_kv_cache_utilization"
NAMES = frozenset(
    (
        _DRAFTED,
        _ACCEPTED,
        _DRAFTED_AT,
        _ACCEPTED_AT,
        _LENGTH,
        *_LOAD.values(),
        _RUNNING,
        _WAITING,
        _USAGE,
    )
)


def read(samples: Samples) -> Page:
    """The page whose lines under NAMES these are.

    The two kinds of totals count the same drafts, at other times: one is used, and by its name is never held
    against the other. One that contradicts itself is left out.
    """
    kinds = {"finished requests": _by_position(samples), "iterations": _over_iterations(samples)}
    told = {kind: spec for kind, spec in kinds.items() if spec is not None}
    known = {kind: spec for kind, spec in told.items() if spec != UNCOUNTED}
    counted = dict(list(known.items())[:1])
    load = load_of(samples, _LOAD, _RUNNING, _WAITING, (_USAGE,))
    lengths = [length if (length or 0) >= 1 else None for length in gauges(samples, _LENGTH).values()]
    return Page(
        ENGINE,
        next(iter((counted or told).values()), None),
        load,
        _reported(lengths),
        notes=tuple(DOUBTED.format(kind=kind) for kind in told if kind not in known),
        by_rank=counted,
    )


def _by_position(samples: Samples) -> SpecCounters | None:
    """Drafts are the drafts to the first position; None where the page has no such totals."""
    drafted, accepted = _spread(samples, _DRAFTED_AT), _spread(samples, _ACCEPTED_AT)
    if drafted == ():
        return None
    if drafted is None or accepted is None or not _can_be(drafted, accepted):
        return UNCOUNTED
    return SpecCounters(
        drafts=drafted[0],
        drafted_tokens=sum(drafted),
        accepted_tokens=sum(accepted),
        accepted_per_position=accepted + (0,) * (len(drafted) - len(accepted)),
        source=SOURCE,
    )


def _can_be(drafted: tuple[int, ...], accepted: tuple[int, ...]) -> bool:
    """Whether no draft got to a position without the one before, and none was accepted beyond its own end."""
    falls = all(a >= b for each in (drafted, accepted) for a, b in pairwise(each))
    return falls and len(accepted) <= len(drafted) and all(map(ge, drafted, accepted))


def _spread(samples: Samples, name: str) -> tuple[int, ...] | None:
    """A counter by position, over all ranks; None where one of its values is no count."""
    sums: list[int] = []
    for values in positions(samples, name, "token_position").values():
        for place, value in enumerate(values):
            known = count(value)
            if known is None:
                return None
            sums += [0] * (place + 1 - len(sums))
            sums[place] += known
    return tuple(sums)


def _over_iterations(samples: Samples) -> SpecCounters | None:
    """None where the page has no such totals."""
    if not counters(samples, _DRAFTED):
        return None
    drafted, accepted = total(samples, _DRAFTED), total(samples, _ACCEPTED)
    counted = SpecCounters(drafted_tokens=drafted, accepted_tokens=accepted, source=SOURCE)
    return possible(counted) or UNCOUNTED


def _reported(lengths: list[float | None]) -> tuple[Stated, ...]:
    known = any(length is not None for length in lengths)
    return (over_ranks("mean_acceptance_length", lengths, LATEST),) if known else ()


def read_iterations(text: str) -> Page | None:
    """The page of a JSON list of iterations: how the server stood at the latest. None for other text."""
    try:
        iterations = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(iterations, list) or not all(isinstance(one, dict) for one in iterations):
        return None
    last: Mapping[str, Any] = iterations[-1] if iterations else {}
    if iterations and "iterLatencyMS" not in last:
        return None
    cache, spec = (last.get(name) for name in ("kvCacheStats", "specDecodingStats"))
    load = Load(
        running=_number(last.get("numActiveRequests")),
        waiting=_number(last.get("numQueuedRequests")),
        kv_usage=_share(cache if isinstance(cache, dict) else {}),
    )
    length = _number(spec.get("acceptanceLength")) if isinstance(spec, dict) else None
    return Page(
        ENGINE,
        SpecCounters(source="TensorRT-LLM /metrics") if isinstance(spec, dict) else None,
        load,
        _reported([length if (length or 0) >= 1 else None]),
        notes=(NOTE,),
    )


def _share(cache: Mapping[str, Any]) -> float | None:
    used, most = _number(cache.get("usedNumBlocks")), _number(cache.get("maxNumBlocks"))
    return used / most if used is not None and most and used <= most else None


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 2**53 else None
