"""Whole documents: GETs of /metrics, /v1/models and the like, and POSTs of JSON that are answered at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from breakeven.client.advice import http_error, redirect_error, without_key
from breakeven.client.endpoint import Endpoint
from breakeven.client.exchange import Exchange
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool, perform
from breakeven.client.wire import Call
from breakeven.errors import ConnectFailed, EndpointError, ProtocolError, TimedOut

MAX_BYTES = 64 * 1024 * 1024
GET_TIMEOUTS = Timeouts(connect_s=10, first_token_s=30, idle_s=30)
QUICK_TIMEOUTS = Timeouts(connect_s=3, first_token_s=5, idle_s=5)
"""For what a server need not tell."""


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
            raise ProtocolError(f"a body of more than {MAX_BYTES // 2**20} MiB: check the URL")


async def get_text(pool: Pool, endpoint: Endpoint, path: str, timeouts: Timeouts = GET_TIMEOUTS) -> str:
    """The body at a path as documented for the server, such as `/metrics` or `/v1/models`.

    Raises HttpError for a status of 400 or above, ProtocolError for a redirect, and what `perform` raises.
    """
    document = await _document(pool, endpoint, Call(endpoint.url_of(path)), timeouts)
    return document.body.decode("utf-8", "replace")


async def post_json(
    pool: Pool, endpoint: Endpoint, path: str, body: bytes, timeouts: Timeouts = GET_TIMEOUTS
) -> dict[str, Any]:
    """The JSON object that answers a JSON body. Raises as get_text does; ProtocolError for other answers."""
    document = await _document(pool, endpoint, Call(endpoint.url_of(path), body), timeouts)
    try:
        answer = orjson.loads(document.body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise ProtocolError(f"{endpoint.url_of(path)} answered with what is no JSON object: check the URL")
    return answer


async def _document(pool: Pool, endpoint: Endpoint, call: Call, timeouts: Timeouts) -> Document:
    try:
        return await _fetch(pool, endpoint, call, timeouts)
    except EndpointError as error:
        raise without_key(endpoint, error) from error.__cause__


async def _fetch(pool: Pool, endpoint: Endpoint, call: Call, timeouts: Timeouts) -> Document:
    document = Document()
    url = call.url
    limit_s = timeouts.connect_s + timeouts.first_token_s  # of a document that comes byte by byte for ever
    try:
        async with asyncio.timeout(limit_s):
            await perform(pool, endpoint, call, Exchange(document), timeouts)
    except TimedOut as error:
        if error.phase == "connect":
            raise
        raise ConnectFailed(
            f"{url} accepts connections but does not answer: is the server still loading?"
        ) from error
    except TimeoutError as error:
        raise ConnectFailed(f"{url} did not come to an end within {limit_s:g} s: check the URL") from error
    if document.status >= 400:
        raise http_error(endpoint, url, document.status, document.body)
    if document.status >= 300:
        raise redirect_error(url, document.status, document.headers.get("location", ""))
    return document
