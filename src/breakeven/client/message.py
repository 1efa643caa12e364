"""One HTTP/1.1 reply: bytes of the connection → status, headers and decoded body, over llhttp (httptools)."""

from __future__ import annotations

import httptools

from breakeven.client.decode import Decoder, decoder_for
from breakeven.errors import ProtocolError

MAX_HEAD_BYTES = 1024 * 1024
"""Most that is read before the headers must be complete."""


class ReplyMessage:
    """Feed it reads until `complete`. `error` holds what went wrong, once the body before it has come out."""

    __slots__ = (
        "_bodies",
        "_decode",
        "_head_bytes",
        "_informational",
        "_parser",
        "complete",
        "error",
        "headers",
        "keep_alive",
        "status",
    )

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._bodies: list[bytes] = []
        self._decode: Decoder | None = None
        self._head_bytes = 0
        self._informational = False
        self.status: int | None = None
        """None until the headers of the final reply (not a 1xx one) are complete."""
        self.headers: dict[str, str] = {}
        """Names in lower case; repeated ones joined by a comma."""
        self.complete = False
        self.keep_alive = False
        self.error: ProtocolError | None = None

    def feed(self, read: bytes) -> bytes:
        """The body bytes in `read`, without chunk framing or compression. Never raises."""
        self._bodies = []
        try:
            self._parser.feed_data(read)
        except httptools.HttpParserUpgrade:
            self.error = ProtocolError("the server switched to another protocol: check the URL")
        except httptools.HttpParserError as error:
            self._parse_error(error, read)
        if self.status is None:
            self._bound_head(len(read))
        bodies = self._bodies
        body = bodies[0] if len(bodies) == 1 else b"".join(bodies)
        return self._decoded(body) if self._decode is not None else body

    @property
    def ends_with_connection(self) -> bool:
        """Whether the close of the connection is this reply's proper end."""
        return (
            self.status is not None
            and "content-length" not in self.headers
            and "chunked" not in self.headers.get("transfer-encoding", "").lower()
        )

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._informational = 100 <= status < 200
        if self._informational or self.complete:
            return
        self.status = status
        try:
            self._decode = decoder_for(self.headers.get("content-encoding", ""))
        except ProtocolError as error:
            self.error = error

    def on_body(self, body: bytes) -> None:
        if not self.complete:
            self._bodies.append(body)

    def on_message_begin(self) -> None:
        if self.complete:
            self.keep_alive = False

    def on_message_complete(self) -> None:
        if self._informational:
            self.headers = {}
        elif not self.complete:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()

    def _decoded(self, body: bytes) -> bytes:
        if self.error is not None or not body or self._decode is None:
            return b"" if self.error is not None else body
        try:
            return self._decode(body)
        except ProtocolError as error:
            self.error = error
            return b""

    def _parse_error(self, error: httptools.HttpParserError, read: bytes) -> None:
        """Bytes after a complete reply are not this reply's fault, but the connection is done with."""
        self.keep_alive = False
        if not self.complete:
            where = "in the middle of the reply" if self.status else "instead of a reply"
            self.error = ProtocolError(f"the server sent what is not HTTP {where} ({error}): {read[:60]!r}")

    def _bound_head(self, n_bytes: int) -> None:
        self._head_bytes += n_bytes
        if self._head_bytes > MAX_HEAD_BYTES:
            self.error = ProtocolError("the server sent headers without end: check the URL")
