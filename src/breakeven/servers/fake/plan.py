"""Plan: everything that is written for one reply, header included."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from breakeven.servers.fake.chunks import CACHED_TOKENS, Chunk, chunks, whole
from breakeven.servers.fake.connection import answer_bytes, head_bytes
from breakeven.servers.fake.reply import Reply
from breakeven.servers.fake.script import Answer, Script
from breakeven.servers.fake.stream import Ending
from breakeven.servers.fake.timeline import Timeline, timeline
from breakeven.servers.fake.wire import Write, body_writes


class Plan(NamedTuple):
    """What is written, when, and what becomes of the connection after the last write."""

    writes: tuple[Write, ...]
    due_ns: tuple[int, ...]
    """When each write is due, since the reply's start. [writes]"""
    ending: Ending


def plan(reply: Reply, times: Timeline, *, streamed: bool) -> Plan:
    """The plan of a reply. Without noise, equal replies have equal times and share it."""
    if reply.script.noise is None and reply.n_tokens <= CACHED_TOKENS:
        return _kept(reply, streamed)
    return _plan(reply, times, streamed)


@lru_cache(maxsize=256)
def _kept(reply: Reply, streamed: bool) -> Plan:
    return _plan(reply, timeline(reply.script, reply.n_tokens, reply.key), streamed)


def _plan(reply: Reply, times: Timeline, streamed: bool) -> Plan:
    writes, ending = _writes(reply, times, streamed)
    return Plan(writes, tuple(round(write.due_s * 1e9) for write in writes), ending)


def _writes(reply: Reply, times: Timeline, streamed: bool) -> tuple[tuple[Write, ...], Ending]:
    script = reply.script
    wire = script.wire
    if not streamed:
        answer = Answer(200, whole(reply, times))
        return (Write(times.due_s[-1], answer_bytes(answer), reply.n_tokens),), "keep"
    spoken = chunks(reply, times)
    dies = script.die_at is not None
    if script.die_at is not None:
        spoken = spoken[: _lived(spoken, script.die_at)]
    body = body_writes(spoken, wire, whole=not dies)
    head = _head_writes(script)
    late = head[-1].due_s
    writes = (*head, *(w if w.due_s >= late else w._replace(due_s=late) for w in body))
    if dies:
        return writes, script.die_how
    return writes, "close" if wire.transfer == "close" else "keep"


def _lived(spoken: list[Chunk], tokens: int) -> int:
    """How many chunks are sent before `tokens` tokens are out."""
    done = 0
    for i, chunk in enumerate(spoken):
        if done >= tokens:
            return i
        done += chunk.n_tokens
    return len(spoken)


def _head_writes(script: Script) -> list[Write]:
    wire = script.wire
    headers = [("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache")]
    headers.append(("Connection", "close") if wire.transfer == "close" else ("Transfer-Encoding", "chunked"))
    if wire.gzip:
        headers.append(("Content-Encoding", "gzip"))
    head = head_bytes(200, tuple(headers))
    if not wire.trickle_header:
        return [Write(wire.header_at_s, head, 0)]
    third = len(head) // 3
    cuts = (head[:third], head[third : 2 * third], head[2 * third :])
    return [Write(wire.header_at_s + 0.005 * i, piece, 0) for i, piece in enumerate(cuts)]
