"""RequestTrace: everything that was seen of one request, raw. Ratios are made from it in latency.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from breakeven.acceptance.counters import SpecCounters


class Kind(IntEnum):
    """What a token-carrying event carried. The numbers are part of the format on disk."""

    CONTENT = 0
    REASONING = 1
    TOOL = 2
    END = 3
    """The closing chunk of a reply that ended by itself: no text; the end-of-sequence token if counted."""
    SILENT = 4
    """Tokens without text: token ids, or a risen usage count, with an empty delta."""


class Event(NamedTuple):
    """One chunk that carries tokens (or may, if it is END). Role-only and empty chunks are not events."""

    read_ns: int
    """When the bytes that completed the chunk were read; monotonic, since the start of the run."""
    read_id: int
    """Chunks of one read share it: they arrived together, whatever their number."""
    kind: Kind
    n_tokens: int | None
    """Tokens in it, from token ids or usage counted per chunk; None is unknown (1 or more; END 0 or 1)."""


@dataclass(frozen=True, slots=True)
class RequestError:
    """Why a request failed. `kind` is the class in errors.py; `status` that of HTTP, if there was one."""

    kind: str
    message: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """One request as it was asked and answered. All `_ns` times are monotonic, since the start of the run."""

    id: str
    prompt_id: str
    category: str
    repeat: int
    block: int
    max_tokens: int
    scheduled_ns: int | None
    """When an open-loop schedule wanted it sent; None in a closed loop."""
    connect_ns: int | None
    """How long the connection took; None if one was reused."""
    sent_ns: int
    """When the request had been written."""
    end_ns: int
    """When the reply's last byte was read, or the failure was seen."""
    events: tuple[Event, ...]
    text: str
    """Content as it came, inline <think> part removed."""
    reasoning: str
    tool_calls: str
    finish_reason: str | None
    usage: Mapping[str, Any] | None
    """The last usage object, as sent."""
    prompt_token_ids: tuple[int, ...] | None = None
    output_token_ids: tuple[int, ...] | None = None
    speculation: SpecCounters | None = None
    server_timings: Mapping[str, Any] | None = None
    """The server's own figures as sent (llama.cpp `timings`, vLLM `metrics`): evidence, never the result."""
    error: RequestError | None = None
    warnings: tuple[str, ...] = ()
