"""A reply's tokens: how many, how many in the first read, how they divide. Counted, never retokenised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from breakeven.trace.records import Event, Kind, RequestTrace

TokensSource = Literal["usage", "token_ids", "chunks", "unknown"]
FirstSource = Literal["token_ids", "usage", "one_per_chunk", "estimate", "unknown"]

MAX_TOKENS = 2**31
NOTHING_CAME = "no token came"
UNTRUSTED_USAGE = "usage.completion_tokens is below what the stream carried: not used"
CHUNKS_COUNTED = (
    "no usable usage and no token ids: chunks were counted as tokens, which is too few if they bundle"
)
UNTRUSTED_REASONING = "usage counts fewer reasoning tokens than the stream carried: not used"
CLAMPED_REASONING = "usage counts more reasoning tokens than its total leaves room for: clamped"


@dataclass(frozen=True, slots=True)
class Total:
    """N, the output tokens of a reply."""

    tokens: int | None
    source: TokensSource
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class FirstRead:
    """n_first, and the bounds that hold whatever it was."""

    tokens: int
    low: int
    high: int
    source: FirstSource


@dataclass(frozen=True, slots=True)
class Share:
    """How N divides. None is unknown, for `reason`."""

    reasoning: int | None
    content: int | None
    reason: str | None = None
    warning: str | None = None


def count(value: Any) -> int | None:
    """A JSON value as a count of tokens, or None if it is none, or more than any reply can hold."""
    return value if type(value) is int and 0 <= value < MAX_TOKENS else None


def usage_reasoning(usage: Mapping[str, Any] | None) -> int | None:
    """usage.completion_tokens_details.reasoning_tokens."""
    details = (usage or {}).get("completion_tokens_details")
    return count(details.get("reasoning_tokens")) if isinstance(details, Mapping) else None


def at_least(events: Iterable[Event]) -> int:
    """The fewest tokens these events can have carried: an unknown one carries 1, an unknown END none."""
    end = Kind.END
    return sum(kind is not end if n_tokens is None else n_tokens for _, _, kind, n_tokens in events)


def total(trace: RequestTrace) -> Total:
    """N from usage; else from token ids; else, named as a last resort, from chunks."""
    ids = None if trace.output_token_ids is None else len(trace.output_token_ids)
    seen = at_least(trace.events)
    stated = count((trace.usage or {}).get("completion_tokens"))
    if stated is not None and stated >= max(seen - _split_chunks(trace.events), ids or 0):
        return Total(stated, "usage")
    warning = None if stated is None else UNTRUSTED_USAGE
    if ids:
        return Total(ids, "token_ids", warning)
    if not seen:
        return Total(None, "unknown", warning)
    if all(event.n_tokens is not None for event in trace.events if event.kind is not Kind.END):
        return Total(seen, "usage" if trace.output_token_ids is None else "token_ids", warning)
    return Total(seen, "chunks", CHUNKS_COUNTED if warning is None else f"{warning}; {CHUNKS_COUNTED}")


def _split_chunks(events: tuple[Event, ...]) -> int:
    """Neighbours of one read and unlike kind, sizes unknown: they may be one chunk cut at a reasoning tag."""
    return sum(
        before.read_id == after.read_id
        and before.kind is not after.kind
        and before.n_tokens is None
        and after.n_tokens is None
        and after.kind is not Kind.END
        for before, after in pairwise(events)
    )


def carriers(trace: RequestTrace, n: Total) -> tuple[Event, ...]:
    """The events that carry a token. An END of unknown size does if and only if N is one above the rest."""
    if not any(event.kind is Kind.END for event in trace.events):
        return trace.events
    texts = tuple(event for event in trace.events if event.kind is not Kind.END)
    end_carries = n.source in ("usage", "token_ids") and n.tokens == at_least(texts) + 1
    return tuple(
        event
        for event in trace.events
        if event.kind is not Kind.END or event.n_tokens or (event.n_tokens is None and end_carries)
    )


def first_read(n: Total, events: tuple[Event, ...], ids_known: bool) -> FirstRead | None:
    """n_first over the token-carrying `events`; None where N is unknown or nothing came."""
    if n.tokens is None or not events:
        return None
    first = [event for event in events if event.read_id == events[0].read_id]
    low, later = _minimum(first), _minimum(events) - _minimum(first)
    if all(event.n_tokens is not None for event in first):
        return FirstRead(low, low, low, "token_ids" if ids_known else "usage")
    if n.source != "chunks" and n.tokens == low + later:
        return FirstRead(low, low, low, "one_per_chunk")
    high = max(low, n.tokens - later)
    estimate = round(n.tokens / len(events) * len(first))
    return FirstRead(min(max(estimate, low), high), low, high, "estimate")


def _minimum(events: Iterable[Event]) -> int:
    """Like `at_least`, of events that are known to carry a token."""
    return sum(1 if n_tokens is None else n_tokens for _, _, _, n_tokens in events)


def share(trace: RequestTrace, n: Total, events: tuple[Event, ...], hidden: bool) -> Share:
    """Reasoning tokens from usage; else from events of known size; else from one-token chunks."""
    if n.tokens is None:
        return Share(None, None, NOTHING_CAME)
    reasoning = [event for event in events if event.kind is Kind.REASONING]
    rest = [event for event in events if event.kind in (Kind.CONTENT, Kind.TOOL)]
    stated = usage_reasoning(trace.usage)
    if stated is not None and stated >= at_least(reasoning) - 1 and (stated or not reasoning):
        return _divide(n.tokens, stated, at_least(rest))
    warning = None if stated is None else UNTRUSTED_REASONING
    counted = _count_reasoning(n, events, reasoning, rest)
    if counted is None or hidden:
        return Share(
            None, None, "usage does not count reasoning, and the chunks do not show how many tokens", warning
        )
    return Share(counted, n.tokens - counted if rest or not reasoning else 0, None, warning)


def _divide(n_tokens: int, stated: int, content_at_least: int) -> Share:
    """Usage may count one too many (clamped), or one too few (content is 0 all the same if none came)."""
    reasoning = min(stated, max(n_tokens - content_at_least, 0))
    content = n_tokens - reasoning if content_at_least or not reasoning else 0
    return Share(reasoning, content, None, CLAMPED_REASONING if reasoning < stated else None)


def _count_reasoning(
    n: Total, events: tuple[Event, ...], reasoning: list[Event], rest: list[Event]
) -> int | None:
    if all(event.n_tokens is not None for event in reasoning) or n.tokens == _minimum(events):
        return _minimum(reasoning)
    return None if rest else n.tokens
