"""Inbox: reads are stamped at once and parsed a moment later.

When many sockets become readable together, parsing the first would delay the stamp of the last. So a read is
only stamped and queued; the queue is worked off after the event loop has read every ready socket. Work is
done in slices so that sockets which become ready meanwhile are stamped soon; a slice is at least half of the
queue, which keeps the queue short when the client is saturated.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

SLICE_READS = 32


class Taker(Protocol):
    """What a queued read is for."""

    def take(self, read_ns: int, read: bytes | Exception | None) -> None:
        """Bytes, or the end of the connection: None if orderly. Must not raise."""


class Inbox:
    """One per event loop."""

    __slots__ = ("_loop", "_queue", "_scheduled")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[tuple[Taker, int, bytes | Exception | None]] = deque()
        self._scheduled = False

    def put(self, taker: Taker, read_ns: int, read: bytes | Exception | None) -> None:
        self._queue.append((taker, read_ns, read))
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        queue = self._queue
        for _ in range(min(len(queue), max(SLICE_READS, len(queue) // 2))):
            taker, read_ns, read = queue.popleft()
            taker.take(read_ns, read)
        if queue:
            self._loop.call_soon(self._work)
        else:
            self._scheduled = False
