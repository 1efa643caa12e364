"""What a server tells of itself at its URL: whether it answers, since when, whether it speculates."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.acceptance.pages import vllm
from breakeven.acceptance.prometheus import read_page, started
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS, get_text
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError, HttpError


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a server."""

    answers: bool
    detail: str = ""
    """Why it does not."""
    speculates: bool | None = None
    """None where the counters do not tell."""
    started: str | None = None
    """By its own clock, as it says; None where it does not."""


async def look(endpoint: Endpoint) -> Seen:
    """Never raises EndpointError: a server that is down is what is looked for."""
    async with Pool() as pool:
        return await _look(pool, endpoint)


async def _look(pool: Pool, endpoint: Endpoint) -> Seen:
    try:
        await get_text(pool, endpoint, "/v1/models", QUICK_TIMEOUTS)
    except HttpError as error:
        if error.status not in (401, 403, 404, 405):
            return Seen(False, str(error))
    except EndpointError as error:
        return Seen(False, str(error))
    try:
        page = await get_text(pool, endpoint, "/metrics", QUICK_TIMEOUTS)
    except EndpointError:
        return Seen(True)
    return Seen(True, "", speculates(page), started(page))


def speculates(text: str) -> bool | None:
    """Whether a /metrics page is of a server with speculation on. vLLM has its counters from the start then,
    and never otherwise; of others only a draft that was made tells anything."""
    page = read_page(text)
    if page is None:
        return None
    if page.engine == vllm.ENGINE:
        return page.spec is not None
    made = page.spec is not None and (
        page.spec.drafts or page.spec.drafted_tokens or page.spec.accepted_tokens
    )
    return True if made else None
