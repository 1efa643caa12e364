"""GET /metrics, read as a Page."""

from __future__ import annotations

from contextlib import suppress

from breakeven.acceptance.page import Page
from breakeven.acceptance.pages import tensorrt
from breakeven.acceptance.prometheus import read_page
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import get_text
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool
from breakeven.errors import HttpError, ProtocolError

PATH = "/metrics"
NO_SUCH_PATH = (404, 405, 501)
"""HTTP status of a path that a server does not have."""


async def get_page(pool: Pool, endpoint: Endpoint, timeouts: Timeouts) -> Page | None:
    """The server's page; None where it is of no engine that is known. Raises as `get_text` does.

    trtllm-serve has its totals elsewhere, where they are switched on.
    """
    page = read_page(await get_text(pool, endpoint, PATH, timeouts))
    if page is None or page.engine != tensorrt.ENGINE or page.by_rank:
        return page
    with suppress(HttpError):
        return read_page(await get_text(pool, endpoint, tensorrt.TOTALS_AT, timeouts)) or page
    return page


async def known_page(pool: Pool, endpoint: Endpoint, timeouts: Timeouts) -> Page:
    """As get_page. Raises ProtocolError, which says what to do, where there is no page of a known engine."""
    url = endpoint.url_of(PATH)
    try:
        page = await get_page(pool, endpoint, timeouts)
    except HttpError as error:
        if error.status not in NO_SUCH_PATH:
            raise
        raise ProtocolError(
            f"HTTP {error.status} at {url}: start llama.cpp with --metrics, SGLang with --enable-metrics, or "
            "check the URL"
        ) from error
    if page is None:
        raise ProtocolError(f"{url} holds no metrics of an engine that is known here: check the URL")
    return page
