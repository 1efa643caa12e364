"""RequestTrace → TTFT, TPOT and the rest: every definition, once."""

from breakeven.latency.hidden import HIDDEN_REASONING
from breakeven.latency.records import (
    DEFINITIONS,
    P99_MIN_N,
    Distribution,
    EnoughTokens,
    RequestLatency,
    RunSummary,
    TokenTotals,
)
from breakeven.latency.request import ONE_READ, request_latency
from breakeven.latency.summary import summarize

__all__ = [
    "DEFINITIONS",
    "HIDDEN_REASONING",
    "ONE_READ",
    "P99_MIN_N",
    "Distribution",
    "EnoughTokens",
    "RequestLatency",
    "RunSummary",
    "TokenTotals",
    "request_latency",
    "summarize",
]
