"""Connection: one socket to a server; stamps what comes, and gives it to the exchange under way."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import cast

from breakeven.client.exchange import Exchange
from breakeven.client.inbox import Inbox
from breakeven.client.message import ReplyMessage
from breakeven.errors import StreamError

DRAIN_S = 1.0
"""How long the HTTP message's end may lag behind the reply's last word; then the connection is dropped."""


class Connection(asyncio.Protocol):
    """Takes one exchange at a time. The clock is time.perf_counter_ns(), which is monotonic."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._message: ReplyMessage | None = None
        self._writing_paused = False
        self._keep_alive = True
        self._closed = False
        self.reused = False

    @property
    def usable(self) -> bool:
        """Whether it can take a further exchange."""
        return not self._closed and self._keep_alive and self._exchange is None and not self._writing_paused

    def send(self, request: bytes, exchange: Exchange) -> None:
        """Writes a whole request; the reply goes to the exchange."""
        self._exchange = exchange
        self._message = ReplyMessage()
        if self._transport is None or self._closed:
            self._settle(StreamError("the connection is closed"))
            return
        self._transport.write(request)
        if not self._writing_paused:
            exchange.sent_ns = perf_counter_ns()

    def abort(self) -> None:
        """Drops the connection and whatever is under way on it."""
        self._closed = True
        self._exchange = self._message = None
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=1)  # 0 never resumes on asyncio's TLS transport

    def data_received(self, data: bytes) -> None:
        read_ns = perf_counter_ns()
        self._inbox.put(self, read_ns, data)

    def eof_received(self) -> None:
        read_ns = perf_counter_ns()
        self._closed = True
        self._inbox.put(self, read_ns, None)

    def connection_lost(self, error: Exception | None) -> None:
        read_ns = perf_counter_ns()
        self._closed = True
        self._inbox.put(self, read_ns, error)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        now_ns = perf_counter_ns()
        self._writing_paused = False
        if self._exchange is not None and self._exchange.sent_ns is None:
            self._exchange.sent_ns = now_ns

    # What the inbox calls.

    def take(self, read_ns: int, read: bytes | Exception | None) -> None:
        exchange, message = self._exchange, self._message
        if exchange is None or message is None:
            self.abort()
        elif type(read) is bytes:
            self._take_bytes(exchange, message, read_ns, read)
        else:
            self._take_end(exchange, message, read)

    def _take_bytes(self, exchange: Exchange, message: ReplyMessage, read_ns: int, read: bytes) -> None:
        read_id = exchange.reads
        exchange.read_ns = read_ns
        exchange.reads = read_id + 1
        consumer = exchange.consumer
        try:
            body = message.feed(read)
            if exchange.status is None and message.status is not None:
                exchange.status = message.status
                consumer.head(message.status, message.headers)
            if body:
                consumer.feed(body, read_ns, read_id)
        except Exception as error:
            self._settle(error)
            return
        if message.error is not None:
            self._settle(message.error)
        elif message.complete:
            self._settle(None, message.keep_alive)
        elif consumer.finished:
            asyncio.get_running_loop().call_later(DRAIN_S, self._stop_draining, exchange)

    def _take_end(self, exchange: Exchange, message: ReplyMessage, error: object) -> None:
        if message.ends_with_connection or exchange.consumer.finished:
            self._settle(None)
            return
        cause = f" ({error})" if error else ""
        if exchange.reads:
            self._settle(
                StreamError(
                    f"the connection broke off in the middle of the reply{cause}: see the server's log"
                )
            )
        else:
            self._settle(
                StreamError(f"the server closed the connection without a reply{cause}: see the server's log")
            )

    def _settle(self, error: Exception | None, keep_alive: bool = False) -> None:
        exchange = self._exchange
        self._exchange = self._message = None
        self._keep_alive = keep_alive
        if exchange is not None:
            exchange.settle(error)

    def _stop_draining(self, exchange: Exchange) -> None:
        if self._exchange is exchange:
            self._settle(None)
