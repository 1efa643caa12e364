"""Stream: writes one reply's bytes when they are due, and records what happened."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Literal, Protocol

from breakeven.acceptance.counters import SpecCounters
from breakeven.servers.fake.chunks import REQUEST_ID
from breakeven.servers.fake.wire import Write

_PLACEHOLDER = REQUEST_ID.encode()

Ending = Literal["keep", "close", "reset"]
Outcome = Literal["served", "died", "aborted"]


@dataclass(frozen=True, slots=True)
class Served:
    """The truth about one request. All times are perf_counter_ns of the server's process."""

    index: int
    connection: int
    """Number of the connection, from 0."""
    body: dict[str, Any]
    received_ns: int
    """When the whole request had been read."""
    start_ns: int
    """When a slot was free for it: its script's times count from here."""
    n_tokens: int
    """Tokens that the reply was to have, a closing end-of-sequence token included."""
    finish_reason: str
    stream: Stream
    """Holds the times; the tuples are made when asked for, not while other streams wait to be written."""
    counters: SpecCounters
    outcome: Outcome

    @property
    def due_ns(self) -> tuple[int, ...]:
        """Of each write that completes tokens, as far as it was written."""
        return tuple(due_ns for due_ns, _, _ in self.stream.truth)

    @property
    def written_ns(self) -> tuple[int, ...]:
        """When it was given to the socket."""
        return tuple(written_ns for _, written_ns, _ in self.stream.truth)

    @property
    def tokens(self) -> tuple[int, ...]:
        """How many it completed."""
        return tuple(n_tokens for _, _, n_tokens in self.stream.truth)


class Carrier(Protocol):
    """What a stream needs of its connection."""

    transport: asyncio.Transport | None
    paused: bool


_BEFORE_RESET_S = 0.01
"""A reset throws away what the event loop has not sent yet."""


class Stream:
    """One reply on its way. `on_end` is called once, with the outcome."""

    def __init__(
        self,
        carrier: Carrier,
        writes: Sequence[Write],
        due_ns: Sequence[int],
        index: int,
        start_ns: int,
        ending: Ending,
        outcome: Outcome,
        burst: int,
        on_end: Callable[[Stream, Outcome], None],
    ) -> None:
        self._carrier = carrier
        self._writes = writes
        self._id = f"chatcmpl-{index:015d}".encode()
        self._due_ns = due_ns
        self._start_ns = start_ns
        self._ending = ending
        self._outcome = outcome
        self._burst = burst
        self._on_end: Callable[[Stream, Outcome], None] | None = on_end
        self._written_ns: list[int] = []
        self.waiting = False
        """The client reads too slowly; resume by handing `advance` to the pacer again."""

    @property
    def first_due_ns(self) -> int:
        return self._start_ns + self._due_ns[0]

    @property
    def truth(self) -> list[tuple[int, int, int]]:
        """(due_ns, written_ns, n_tokens) of each write made so far that completed tokens."""
        made = zip(self._due_ns, self._written_ns, self._writes, strict=False)
        start_ns = self._start_ns
        return [
            (start_ns + due_ns, written_ns, write.n_tokens)
            for due_ns, written_ns, write in made
            if write.n_tokens
        ]

    def advance(self, now_ns: int) -> int | None:
        """Write what is due, `burst` writes at most; return when the next is due."""
        transport = self._carrier.transport
        if transport is None or self._on_end is None:
            return None
        if self._carrier.paused:
            self.waiting = True
            return None
        start = len(self._written_ns)
        stop = self._due_until(start, now_ns)
        data = b"".join([write.data for write in self._writes[start:stop]])
        transport.write(data.replace(_PLACEHOLDER, self._id))
        self._written_ns.extend([perf_counter_ns()] * (stop - start))
        if stop < len(self._writes):
            return self._start_ns + self._due_ns[stop]
        self._finish(transport)
        return None

    def abort(self) -> None:
        """The client went away."""
        self._end("aborted")

    def _due_until(self, start: int, now_ns: int) -> int:
        stop = start + 1
        limit = min(start + self._burst, len(self._writes))
        elapsed_ns = now_ns - self._start_ns
        while stop < limit and self._due_ns[stop] <= elapsed_ns:
            stop += 1
        return stop

    def _finish(self, transport: asyncio.Transport) -> None:
        if self._ending == "close":
            transport.close()
        elif self._ending == "reset":
            asyncio.get_running_loop().call_later(_BEFORE_RESET_S, reset, transport)
        self._end(self._outcome)

    def _end(self, outcome: Outcome) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(self, outcome)


def reset(transport: asyncio.Transport) -> None:
    """Break the connection so that the peer reads a reset: linger for 0 s."""
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    transport.abort()
