"""What was asked, as the replies tell it, to be held against what the server counted."""

from __future__ import annotations

from collections.abc import Iterable

from breakeven.acceptance.meter import Asked
from breakeven.latency.tokens import total
from breakeven.trace.records import RequestTrace


def asked_of(traces: Iterable[RequestTrace]) -> Asked:
    """A reply that failed may have had any number of tokens: theirs are not known then."""
    return sum(map(_one, traces), Asked())


def _one(trace: RequestTrace) -> Asked:
    tokens = total(trace)
    if trace.error is not None or tokens.tokens is None or tokens.source == "chunks":
        return Asked(1, None)
    return Asked(1, tokens.tokens, tokens.tokens)
