"""A running server looked at for a while: its /metrics, read twice. Nothing is asked of its model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.output import stderr
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import GET_TIMEOUTS
from breakeven.client.identity import identify
from breakeven.client.loop import session
from breakeven.client.metrics import PATH, known_page
from breakeven.client.transport import Pool
from breakeven.report.progress import progress

if TYPE_CHECKING:
    from breakeven.acceptance.page import Page
    from breakeven.diagnose.readings import Look

STEP_S = 1.0
"""Of the bar."""
SECONDS = 30.0
"""Between the two readings, unless it was typed."""


def look_at(values: Mapping[str, Any]) -> Look:
    """What happened on the server at `url` within `seconds`, or until Ctrl-C, after which it is read again.

    Raises EndpointError where one of the two readings fails, UsageError for a URL that cannot be used.
    """
    from breakeven.diagnose.readings import Look

    endpoint = endpoint_of(values["url"], values)
    with session() as runner:
        version, before = runner.run(_first(endpoint))
        began_s = time.monotonic()
        _wait(values["seconds"] or SECONDS)
        after = runner.run(_again(endpoint))
        return Look(before, after, time.monotonic() - began_s, version)


def endpoint_of(url: str, values: Mapping[str, Any]) -> Endpoint:
    """Of a server whose /metrics is read; the URL of that page will do. Raises UsageError."""
    plain = {**values, "api": "chat", "model": None}
    return options.endpoint(plain, url.rstrip("/").removesuffix(PATH))


async def _first(endpoint: Endpoint) -> tuple[str | None, Page]:
    """The version is asked for first: the time between the pages is the server's own."""
    async with Pool() as pool:
        version = (await identify(pool, endpoint)).version
        return version, await known_page(pool, endpoint, GET_TIMEOUTS)


async def _again(endpoint: Endpoint) -> Page:
    async with Pool() as pool:
        return await known_page(pool, endpoint, GET_TIMEOUTS)


def _wait(seconds: float) -> None:
    """With a bar, in seconds. Ctrl-C ends it."""
    until_s = time.monotonic() + seconds
    try:
        with progress("look", math.ceil(seconds), stderr()) as ticker:
            while (left_s := until_s - time.monotonic()) > 0:
                time.sleep(min(STEP_S, left_s))
                ticker.advance(note="Ctrl-C reads at once")
    except KeyboardInterrupt:
        click.echo("read at once", err=True)
