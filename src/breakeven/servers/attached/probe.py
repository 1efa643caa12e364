"""What a server tells of itself at its URL: whether it answers, since when, whether it speculates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakeven.acceptance.prometheus import read_counters
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS, get_text
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError, HttpError

_STARTED = re.compile(r"^process_start_time_seconds(?:\{[^}]*\})? (\S+)", re.MULTILINE)
_VLLM = "\nvllm:"


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
    started = _STARTED.search(page)
    return Seen(True, "", speculates(page), started.group(1) if started else None)


def speculates(page: str) -> bool | None:
    """Whether a /metrics page is of a server with speculation on. vLLM has its counters from the start then,
    and never otherwise; of others only a draft that was made tells anything."""
    counters = read_counters(page)
    if counters is not None and (_VLLM in f"\n{page}" or counters.drafts or counters.drafted_tokens):
        return True
    return False if counters is None and _VLLM in f"\n{page}" else None
