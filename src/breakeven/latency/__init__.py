"""RequestTrace → TTFT, TPOT and the rest: every definition, once."""

from breakeven.latency.records import (
    DEFINITIONS,
    P99_MIN_N,
    Distribution,
    EnoughTokens,
    RequestLatency,
    RunSummary,
    TokenTotals,
)
from breakeven.latency.request import request_latency
from breakeven.latency.summary import summarize

__all__ = [
    "DEFINITIONS",
    "P99_MIN_N",
    "Distribution",
    "EnoughTokens",
    "RequestLatency",
    "RunSummary",
    "TokenTotals",
    "request_latency",
    "summarize",
]
