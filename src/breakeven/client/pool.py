"""Pool: connections kept alive between requests, the most recently used first."""

from __future__ import annotations

import asyncio
from types import TracebackType

from breakeven.client.connect import Origin, connect
from breakeven.client.connection import Connection
from breakeven.client.inbox import Inbox


class Pool:
    """As many connections as requests are in flight. Belongs to the event loop that first uses it."""

    def __init__(self) -> None:
        self._idle: dict[Origin, list[Connection]] = {}
        self._inbox: Inbox | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Pool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reuse(self, origin: Origin) -> Connection | None:
        """A kept connection that is still open, as far as is known."""
        idle = self._idle.get(origin, [])
        while idle:
            connection = idle.pop()
            if connection.usable:
                connection.reused = True
                return connection
            connection.abort()
        return None

    async def connect(self, origin: Origin, timeout_s: float) -> Connection:
        """A fresh connection. Raises ConnectFailed and TimedOut."""
        if self._inbox is None:
            self._inbox = Inbox(asyncio.get_running_loop())
        return await connect(origin, self._inbox, timeout_s)

    def release(self, origin: Origin, connection: Connection) -> None:
        """Keeps a connection whose exchange is over and drops any other."""
        if connection.usable:
            self._idle.setdefault(origin, []).append(connection)
        else:
            connection.abort()

    async def turn(self) -> None:
        """Waits for a turn of the event loop in which no other caller works.

        Between two turns every ready socket is read. So when hundreds of requests start or end together, the
        work of one delays no stamp of another by more than its own length.
        """
        async with self._turn:
            await asyncio.sleep(0)

    def close(self) -> None:
        """Drops every idle connection."""
        for idle in self._idle.values():
            for connection in idle:
                connection.abort()
        self._idle.clear()
