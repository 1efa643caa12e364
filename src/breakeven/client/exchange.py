"""Exchange: one request and its reply, as far as it has come; and Consumer, which takes the reply's body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol


class Consumer(Protocol):
    """Takes a reply as it comes. Whatever it raises ends the exchange with that error."""

    @property
    def has_token(self) -> bool:
        """True once a token has come: from then on the idle time-out holds, not the first-token one."""

    @property
    def finished(self) -> bool:
        """True once the reply has said its last word, even if its HTTP message has not ended."""

    def head(self, status: int, headers: Mapping[str, str]) -> None: ...

    def feed(self, body: bytes, read_ns: int, read_id: int) -> None: ...


class Exchange:
    """Times are of time.perf_counter_ns(). Every field keeps its last value when the exchange fails."""

    __slots__ = (
        "_waiter",
        "connect_ns",
        "consumer",
        "error",
        "read_ns",
        "reads",
        "sent_ns",
        "settled",
        "status",
    )

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.connect_ns: int | None = None
        """How long the connection took; None if one was reused."""
        self.sent_ns: int | None = None
        """When the last byte of the request had been handed to the kernel."""
        self.read_ns: int | None = None
        """When the last read was made."""
        self.reads = 0
        """Reads so far; a read's id is the number of those before it."""
        self.status: int | None = None
        self.settled = False
        self.error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def outcome(self) -> None:
        """Returns when the exchange has ended; raises its error."""
        if not self.settled:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.error is not None:
            raise self.error

    def restart(self) -> None:
        """Forgets an attempt of which no byte came back."""
        self.sent_ns = None
        self.settled = False
        self.error = self._waiter = None

    def settle(self, error: Exception | None = None) -> None:
        """Ends the exchange; only the first call counts."""
        if self.settled:
            return
        self.settled = True
        self.error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
