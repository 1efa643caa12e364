"""The records of latency: what one request and one run came to. Absent is None, with a reason in `absent`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakeven.acceptance.counters import SpecCounters

DEFINITIONS = {
    "ttft": "request written → first chunk that carries a token of any kind (reasoning, content, tool call)",
    "ttft_content": "request written → first chunk that carries a content token; absent when none came",
    "tpot": "(t_last − t_first) / (N − n_first), where n_first tokens came in the first read that held any",
    "e2e": "request written → last byte of the reply",
    "decode_tokens_per_s": "tokens after the first read / time after it, each summed over the requests",
    "output_tokens_per_s": "all output tokens / wall time of the run",
    "tokens_per_chunk": "output tokens / chunks that carried any: above 1 the server bundles",
    "truncated_in_reasoning": "finish_reason is length and no content token came",
    "speedup": "baseline TPOT / candidate TPOT per prompt; geometric mean over prompts; above 1 is faster",
    "percentiles": "linear interpolation between order statistics (Hyndman and Fan, type 7)",
    "content_tokens": "output tokens but reasoning: content, tool calls, the end-of-sequence token",
}

P99_MIN_N = 100
"""Below this many values the 99th percentile lies between the two largest: little but the maximum."""


@dataclass(frozen=True, slots=True)
class RequestLatency:
    """The derived figures of one request. None is absent, and `absent` gives the reason by field name."""

    ttft_s: float | None
    ttft_content_s: float | None
    e2e_s: float | None
    tpot_s: float | None
    tpot_low_s: float | None
    tpot_high_s: float | None
    """The bounds that hold whatever n_first was; equal to tpot_s where n_first is known."""
    decode_s: float | None
    """t_last − t_first."""
    decode_tokens: int | None
    """N − n_first."""
    output_tokens: int | None
    reasoning_tokens: int | None
    content_tokens: int | None
    tokens_source: Literal["usage", "token_ids", "chunks", "unknown"]
    n_first: int | None
    n_first_source: Literal["token_ids", "usage", "one_per_chunk", "estimate", "unknown"]
    chunks: int
    truncated_in_reasoning: bool
    warnings: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)

    def why_absent(self, name: str) -> str:
        """The reason without its particulars: `hidden reasoning`. KeyError for a figure that is there."""
        return self.absent[name].partition(":")[0]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of one figure in seconds over the requests that have it. Percentiles interpolate linearly (type 7)."""

    mean: float
    p50: float
    p90: float
    p99: float | None
    """None below P99_MIN_N values."""
    n: int


@dataclass(frozen=True, slots=True)
class TokenTotals:
    """Sums over the requests that succeeded and say their count; None where none of them does."""

    prompt: int | None
    output: int | None
    reasoning: int | None
    content: int | None


@dataclass(frozen=True, slots=True)
class EnoughTokens:
    """The max_tokens that lets the median request end by itself."""

    tokens: int
    more_than: bool
    """True if the median request was cut off at `tokens`: it needs more, and how much more is unknown."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run's figures. None is absent, and `absent` gives the reason by field name."""

    requests: int
    errors: int
    errors_by_kind: Mapping[str, int]
    """Keyed by the class in errors.py."""
    truncated_in_reasoning: int
    max_tokens_enough_for_median: EnoughTokens | None
    tokens: TokenTotals
    ttft: Distribution | None
    ttft_content: Distribution | None
    tpot: Distribution | None
    e2e: Distribution | None
    decode_tokens_per_s: float | None
    output_tokens_per_s: float | None
    tokens_per_chunk: float | None
    speculation: SpecCounters | None
    speculation_requests: int
    """Requests whose reply carried speculation counts."""
    tokens_sources: Mapping[str, int]
    """Requests by where their token count came from."""
    n_first_sources: Mapping[str, int]
    warnings: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
