"""What was read of a reply → its RequestTrace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter_ns
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.per_request import CARRIERS, from_chunk
from breakeven.client.chunks import ChunkReader
from breakeven.client.counts import tokens_per_event
from breakeven.client.exchange import Exchange
from breakeven.client.reasoning import Split, split_inline
from breakeven.errors import BreakevenError
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace
from breakeven.workload.prompts import Request

PRE_OPENED = "a lone </think> was taken as the end of reasoning that the chat template had opened"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a request before its reply; `clock_zero_ns` and `began_ns` are perf_counter_ns()."""

    request: Request
    max_tokens: int
    clock_zero_ns: int
    scheduled_ns: int | None
    began_ns: int


def assemble(
    asked: Asked, exchange: Exchange, reader: ChunkReader, error: BreakevenError | None
) -> RequestTrace:
    """One trace, of a reply that ended well or of as much as came."""
    zero_ns = asked.clock_zero_ns
    split = None if Kind.REASONING in reader.kinds else split_inline(reader.contents, reader.kinds)
    ended_ns = exchange.read_ns if error is None and exchange.read_ns else perf_counter_ns()
    request = asked.request
    return RequestTrace(
        id=request.id,
        prompt_id=request.prompt.id,
        category=request.prompt.category,
        repeat=request.repeat,
        block=request.block,
        max_tokens=asked.max_tokens,
        scheduled_ns=asked.scheduled_ns,
        connect_ns=exchange.connect_ns,
        sent_ns=_sent_ns(exchange, asked.began_ns) - zero_ns,
        end_ns=ended_ns - zero_ns,
        events=_events(reader, split, zero_ns),
        text=_mend(split.content if split else "".join(reader.contents)),
        reasoning=_mend(split.reasoning if split else "".join(reader.reasoning)),
        tool_calls=_mend("".join(reader.tools)),
        finish_reason=reader.finish_reason,
        usage=reader.usage,
        prompt_token_ids=reader.prompt_ids,
        output_token_ids=_output_ids(reader),
        speculation=_speculation(reader),
        server_timings=_server_timings(reader),
        error=None if error is None else _request_error(error),
        warnings=tuple(sorted(reader.warnings | ({PRE_OPENED} if split and split.pre_opened else set()))),
    )


def _sent_ns(exchange: Exchange, began_ns: int) -> int:
    """A reply that came before the request was wholly written stands for the end of writing."""
    return exchange.sent_ns or exchange.read_ns or began_ns


def _events(reader: ChunkReader, split: Split | None, zero_ns: int) -> tuple[Event, ...]:
    """Chunks without text whose tokens turn out unknown are no events: a total came with them, no token."""
    counts = tokens_per_event(reader.kinds, reader.id_counts, reader.cumulative)
    kinds = split.kinds if split else reader.kinds
    read_ns = [time_ns - zero_ns for time_ns in reader.read_ns]
    rows = zip(read_ns, reader.read_ids, kinds, counts, strict=True)
    events = map(tuple.__new__, repeat(Event), rows)
    if Kind.SILENT not in kinds:
        return tuple(events)
    return tuple(event for event in events if event.kind is not Kind.SILENT or event.n_tokens is not None)


def _output_ids(reader: ChunkReader) -> tuple[int, ...] | None:
    """Only if every event with text gave its ids: some of them would be a wrong answer."""
    rows = zip(reader.kinds, reader.id_counts, strict=True)
    complete = all(count is not None or kind in (Kind.END, Kind.SILENT) for kind, count in rows)
    return tuple(reader.output_ids) if complete and reader.output_ids else None


def _speculation(reader: ChunkReader) -> SpecCounters | None:
    if reader.timed_chunk is None:
        return None
    tokens = (reader.usage or {}).get("completion_tokens")
    return from_chunk(reader.timed_chunk, tokens if type(tokens) is int else None)


def _server_timings(reader: ChunkReader) -> Mapping[str, Any] | None:
    """`timings` (llama.cpp), `metrics` (vLLM) and the like, under the name they were sent with."""
    if reader.timed_chunk is None:
        return None
    return {name: reader.timed_chunk[name] for name in CARRIERS if reader.timed_chunk.get(name)}


def _request_error(error: BreakevenError) -> RequestError:
    return RequestError(type(error).__name__, str(error), getattr(error, "status", None))


def _mend(text: str) -> str:
    """Joins surrogate pairs that chunks had split, and replaces lone ones: they cannot be stored."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
