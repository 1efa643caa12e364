"""Pacer: one timer for every stream of a server. Deadlines are absolute, so that lateness never adds up."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from time import perf_counter_ns

Advance = Callable[[int], int | None]
"""Given the time (perf_counter_ns), do what is due; return when the next is, or None."""

_SHORTEST_WAIT_S = 0.001
"""Event loops count timers in milliseconds; a shorter wait would spin."""


class Pacer:
    """Calls each `advance` when it is due, in the order of the deadlines."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: list[tuple[int, int, Advance]] = []
        self._order = count()
        self._timer: asyncio.Handle | None = None
        self._armed_ns = 0

    def add(self, due_ns: int, advance: Advance) -> None:
        """Call `advance` at `due_ns` (perf_counter_ns), or at once if that has passed."""
        heapq.heappush(self._queue, (due_ns, next(self._order), advance))
        if self._timer is None or due_ns < self._armed_ns:
            self._arm()

    def close(self) -> None:
        """Forget all that is waiting."""
        self._queue.clear()
        self._disarm()

    def _arm(self) -> None:
        self._disarm()
        if not self._queue:
            return
        self._armed_ns = self._queue[0][0]
        wait_s = (self._armed_ns - perf_counter_ns()) / 1e9
        if wait_s <= 0:
            self._timer = self._loop.call_soon(self._tick)
        else:
            self._timer = self._loop.call_later(max(wait_s, _SHORTEST_WAIT_S), self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        """One turn for each stream that is due: one that has more to do at once waits for the others."""
        now_ns = perf_counter_ns()
        self._timer = None
        turn = []
        while self._queue and self._queue[0][0] <= now_ns:
            turn.append(heapq.heappop(self._queue)[2])
        for advance in turn:
            due_ns = advance(now_ns)
            if due_ns is not None:
                heapq.heappush(self._queue, (due_ns, next(self._order), advance))
        self._arm()
