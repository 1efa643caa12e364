"""Wire: chunks → the bytes of an SSE body, and the times at which they are written."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from breakeven.servers.fake.chunks import Chunk
from breakeven.servers.fake.script import Wire

_GZIP_WINDOW_BITS = 31


class Write(NamedTuple):
    """Bytes that are given to the socket at once, at `due_s` after the reply's start."""

    due_s: float
    data: bytes
    n_tokens: int
    """Tokens whose chunk these bytes complete."""


def body_writes(chunks: Iterable[Chunk], wire: Wire, *, whole: bool = True) -> list[Write]:
    """The body of a streamed reply. Unless `whole`, it lacks its end, as when a connection breaks."""
    events = list(_events(chunks, wire, whole))
    if wire.ping_s is not None:
        events = list(_with_pings(events, wire))
    if wire.gzip:
        events = list(_compressed(events, whole))
    if wire.transfer == "chunked":
        events = [Write(due_s, b"%x\r\n%b\r\n" % (len(data), data), n) for due_s, data, n in events if data]
        if whole and events:
            events.append(Write(events[-1].due_s, b"0\r\n\r\n", 0))
    if wire.events_per_write > 1:
        events = list(_merged(events, wire.events_per_write))
    if wire.split != "none":
        events = [half for write in events for half in _halves(write, wire)]
    return _in_order(events)


def _events(chunks: Iterable[Chunk], wire: Wire, whole: bool) -> Iterator[Write]:
    plain = wire.line_end == "\n" and not wire.multi_line and not wire.comments
    due_s = 0.0
    for due_s, payload, n_tokens in chunks:
        event = b"data: %b\n\n" % payload if plain else _event(payload, wire)
        yield Write(due_s, event, n_tokens)
    if whole and wire.done:
        yield Write(due_s, _event(b"[DONE]", wire), 0)


def _event(payload: bytes, wire: Wire) -> bytes:
    lines = [b": a comment", b"event: message", b"id: 1"] if wire.comments else []
    if wire.multi_line and payload.startswith(b"{"):
        comma = payload.index(b",") + 1
        lines += [b"data: " + payload[:comma], b"data: " + payload[comma:]]
    else:
        lines.append(b"data: " + payload)
    end = wire.line_end.encode()
    return end.join([*lines, b"", b""])


def _with_pings(events: list[Write], wire: Wire) -> Iterator[Write]:
    ping = b": ping" + wire.line_end.encode() * 2
    ping_s = wire.ping_s or 1.0
    next_s = 0.0
    for event in events:
        while next_s <= event.due_s:
            yield Write(next_s, ping, 0)
            next_s += ping_s
        yield event


def _compressed(events: list[Write], whole: bool) -> Iterator[Write]:
    gzip = zlib.compressobj(6, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    for due_s, data, n_tokens in events:
        yield Write(due_s, gzip.compress(data) + gzip.flush(zlib.Z_SYNC_FLUSH), n_tokens)
    if whole and events:
        yield Write(events[-1].due_s, gzip.flush(), 0)


def _merged(events: list[Write], n: int) -> Iterator[Write]:
    rest = iter(events)
    while group := list(islice(rest, n)):
        data = b"".join(event.data for event in group)
        yield Write(group[-1].due_s, data, sum(event.n_tokens for event in group))


def _halves(write: Write, wire: Wire) -> list[Write]:
    cut = _cut(write.data, wire.split == "utf8")
    if cut is None:
        return [write]
    second = Write(write.due_s + wire.split_gap_s, write.data[cut:], write.n_tokens)
    return [Write(write.due_s, write.data[:cut], 0), second]


def _cut(data: bytes, in_character: bool) -> int | None:
    if in_character:
        return next((i + 1 for i, byte in enumerate(data) if byte >= 0xC0), None)
    return random.Random(data).randrange(1, len(data)) if len(data) > 1 else None  # noqa: S311


def _in_order(writes: list[Write]) -> list[Write]:
    """A write is never due before the one that precedes it."""
    latest = 0.0
    ordered = []
    for write in writes:
        latest = max(latest, write.due_s)
        ordered.append(write if write.due_s == latest else write._replace(due_s=latest))
    return ordered
