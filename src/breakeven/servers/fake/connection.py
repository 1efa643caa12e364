"""Connection: HTTP/1.1 requests in, raw bytes out."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import httptools

from breakeven.servers.fake.script import Answer
from breakeven.servers.fake.stream import Stream


@dataclass(slots=True)
class HttpRequest:
    """One request as it was read. Header names are in lower case."""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Connection(asyncio.Protocol):
    """One client's connection. Requests on it are answered one after the other."""

    def __init__(self, number: int, handle: Callable[[Connection, HttpRequest], None]) -> None:
        self.number = number
        self.transport: asyncio.Transport | None = None
        self.paused = False
        self.on_resume: Callable[[Stream], None] | None = None
        self.on_lost: Callable[[Connection], None] | None = None
        self.stream: Stream | None = None
        self._handle = handle
        self._busy = False
        self._pending: deque[HttpRequest] = deque()
        self._parser = httptools.HttpRequestParser(self)
        self._request = HttpRequest()
        self._pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._pending.clear()
        if self.stream is not None:
            self.stream.abort()
        if self.on_lost is not None:
            self.on_lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.answer(Answer(400, str(error).encode(), "text/plain"))
            if self.transport is not None:
                self.transport.close()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self.stream is not None and self.on_resume is not None:
            self.on_resume(self.stream)

    def on_url(self, url: bytes) -> None:
        self._request.path = url.split(b"?")[0].decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        request, self._request = self._request, HttpRequest()
        request.method = self._parser.get_method().decode()
        request.body = b"".join(self._pieces)
        self._pieces.clear()
        self._pending.append(request)
        self._next()

    def answer(self, answer: Answer) -> None:
        """Write a whole answer and go on to the next request."""
        if self.transport is not None:
            self.transport.write(answer_bytes(answer))
        self.free()

    def free(self) -> None:
        """The request in hand is answered."""
        self.stream = None
        self._busy = False
        self._next()

    def _next(self) -> None:
        if self._pending and not self._busy:
            self._busy = True
            self._handle(self, self._pending.popleft())


def answer_bytes(answer: Answer) -> bytes:
    """Status line, headers with a length, body."""
    headers = (
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(answer.body))),
        *answer.headers,
    )
    return head_bytes(answer.status, headers) + answer.body


def head_bytes(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Status line and headers."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        "Server: breakeven-fake",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
