"""ReplyStream: the body of a streamed reply as it comes; and what it turns out to be if it is no stream."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from breakeven.client.chunks import IGNORED_STREAM, ChunkReader
from breakeven.client.errorbody import detail_of, error_in, is_html, loads
from breakeven.client.limit import ReplyLimit
from breakeven.client.sse import SseParser
from breakeven.errors import ProtocolError, StreamError
from breakeven.trace.records import Kind

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
ERROR_STARTS = ("error", "internal server error", "internal error", "traceback", "exception")
COMPRESSED = "the server compressed the stream though identity was asked for: chunks may have been held back"


class ReplyStream:
    """A Consumer. A body is read as a stream unless its status is not 2xx, or it starts like JSON or HTML.

    Without a `limit`, a reply may grow for ever.
    """

    def __init__(self, url: str, limit: ReplyLimit | None = None) -> None:
        self.reader = ChunkReader()
        self.status: int | None = None
        self._url = url
        self._limit = limit
        self._headers: Mapping[str, str] = {}
        self._sse = SseParser()
        self._document: bytearray | None = None
        self._sniffed = False

    @property
    def has_token(self) -> bool:
        return bool(self.reader.kinds)

    @property
    def finished(self) -> bool:
        return self.reader.done

    @property
    def document(self) -> bytes:
        """The body, where it is no stream."""
        return bytes(self._document or b"")

    @property
    def _succeeded(self) -> bool:
        """Some frameworks answer any POST with 201."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def location(self) -> str:
        """Where a redirect points."""
        return self._headers.get("location", "")

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self._headers = headers
        if not self._succeeded:
            self._document = bytearray()
        if headers.get("content-encoding", "identity").lower() != "identity":
            self.reader.warnings.add(COMPRESSED)

    def feed(self, body: bytes, read_ns: int, read_id: int) -> None:
        if not self._sniffed:
            self._sniff(body)
        if self._document is not None:
            self._keep(body)
            return
        take = self.reader.take
        for item in self._sse.feed(body):
            take(item, read_ns, read_id)
        if self._limit is not None:
            self._limit.check(self.reader)

    def close(self, read_ns: int, read_id: int) -> None:
        """For the orderly end. Raises StreamError or ProtocolError if it is not the end of a reply."""
        if self._document is not None:
            self._close_document()
        elif not self.reader.done:
            self._flush(read_ns, read_id)
            self._check_ended()
        self._check_disguised_error()

    def _sniff(self, body: bytes) -> None:
        """No event stream starts with a bracket, whatever its content type says."""
        start = body.lstrip()[:1]
        self._sniffed = bool(start)
        if start in (b"{", b"<", b"["):
            self._document = self._document or bytearray()

    def _keep(self, body: bytes) -> None:
        if self._document is not None:
            self._document += body
            if len(self._document) > MAX_DOCUMENT_BYTES:
                raise ProtocolError(f"{self._url} answers with a body without end: check the URL")

    def _close_document(self) -> None:
        if not self._succeeded:
            return
        if is_html(self.document):
            raise ProtocolError(
                f"{self._url} answers with a web page ({detail_of(self.document)!r}): check the URL"
            )
        value = loads(self.document)
        message = error_in(value)
        if message is not None:
            raise StreamError(f"the server answered with an error: {message}")
        if isinstance(value, dict) and value.get("choices"):
            raise ProtocolError(IGNORED_STREAM)
        raise ProtocolError(
            f"{self._url} answers with no event stream ({detail_of(self.document)[:200]!r}): check the URL"
        )

    def _flush(self, read_ns: int, read_id: int) -> None:
        """An event that the end cut short is no event: `_check_ended` tells what that means."""
        for item in self._sse.close():
            try:
                self.reader.take(item, read_ns, read_id)
            except ProtocolError:
                return

    def _check_ended(self) -> None:
        if self.reader.done or self.reader.finish_reason is not None:
            return
        message = self._stray_error()
        if message:
            raise StreamError(f"the stream carried an error: {message}")
        if self.reader.chunks == 0:
            kind = self._headers.get("content-type", "no content type")
            raise ProtocolError(
                f"{self._url} answers {self.status} without a single chunk ({kind}): check the URL and --api"
            )
        raise StreamError(
            "the stream ended with neither finish_reason nor [DONE]: the server gave up; see its log"
        )

    def _stray_error(self) -> str | None:
        value: Any = loads(self._sse.stray)
        return error_in(value)

    def _check_disguised_error(self) -> None:
        """Some servers send an error as the text of a reply of one chunk."""
        reader = self.reader
        texts = list(islice(filter(None, reader.contents), 2))
        if len(texts) != 1 or any(kind in (Kind.REASONING, Kind.TOOL) for kind in reader.kinds):
            return
        claimed = (reader.usage or {}).get("completion_tokens")
        message = disguised_error(
            texts[0], ended=reader.finish_reason is not None, claims_one=claimed in (0, 1)
        )
        if message is not None:
            raise StreamError(f"the server sent an error as if it were a reply: {message}")


def disguised_error(text: str, ended: bool, claims_one: bool) -> str | None:
    """The message if a reply's only text is an error.

    An error object, or several words that start like an error, are believed to be one if the reply was not
    ended properly, or claims to be a single token, which they are not.
    """
    if ended and not claims_one:
        return None
    message = error_in(loads(text.encode("utf-8", "replace")))
    if message is None and " " in text.strip() and text.lstrip().lower().startswith(ERROR_STARTS):
        return text.strip()[:600]
    return message
