"""Plain GETs: /metrics, /v1/models and the like."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.client.advice import http_error, redirect_error
from breakeven.client.endpoint import Endpoint
from breakeven.client.exchange import Exchange
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool, perform
from breakeven.client.wire import Call
from breakeven.errors import ConnectFailed, ProtocolError, TimedOut

MAX_BYTES = 64 * 1024 * 1024
GET_TIMEOUTS = Timeouts(connect_s=10, first_token_s=30, idle_s=30)


class Document:
    """A Consumer that keeps the whole body."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.has_token = False
        self.finished = False
        self._body = bytearray()

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers

    def feed(self, body: bytes, read_ns: int, read_id: int) -> None:
        self.has_token = True
        self._body += body
        if len(self._body) > MAX_BYTES:
            raise ProtocolError(f"a body of more than {MAX_BYTES // 2**20} MiB: check --url")


async def get_text(pool: Pool, endpoint: Endpoint, path: str, timeouts: Timeouts = GET_TIMEOUTS) -> str:
    """The body at a path as documented for the server, such as `/metrics` or `/v1/models`.

    Raises HttpError for a status of 400 or above, ProtocolError for a redirect, and what `perform` raises.
    """
    url = endpoint.url_of(path)
    document = Document()
    try:
        await perform(pool, endpoint, Call(url), Exchange(document), timeouts)
    except TimedOut as error:
        if error.phase == "connect":
            raise
        raise ConnectFailed(
            f"{url} accepts connections but does not answer: is the server still loading?"
        ) from error
    if document.status >= 400:
        raise http_error(endpoint, url, document.status, document.body)
    if document.status >= 300:
        raise redirect_error(url, document.status, document.headers.get("location", ""))
    return document.body.decode("utf-8", "replace")
