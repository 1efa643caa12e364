"""Server: one watched server, read again and again whatever it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from breakeven.acceptance.page import Page
from breakeven.client.endpoint import Endpoint
from breakeven.client.metrics import known_page
from breakeven.client.preflight import list_served
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError
from breakeven.watch.state import ServerState, now
from breakeven.watch.window import Reading, Window
from breakeven.watch.yardstick import Yardstick

LEAST_PATIENCE_S, MOST_PATIENCE_S = 5.0, 30.0
"""That a server has to answer, whatever the interval is."""


class Server:
    """Looks at /metrics and keeps what it finds; a look never raises for what a server does."""

    def __init__(
        self,
        endpoint: Endpoint,
        window_s: float,
        yardstick: Yardstick | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._yardstick = yardstick
        self._clock = clock
        self._window = Window(window_s)
        self.state = ServerState(endpoint.root_url, problem="not read yet")

    async def keep_looking(self, pool: Pool, interval_s: float) -> None:
        """For ever, each look `interval_s` after the last began, or at once where that took longer."""
        while True:
            began_s = self._clock()
            await self.look(pool, interval_s)
            await asyncio.sleep(max(began_s + interval_s - self._clock(), 0.0))

    async def look(self, pool: Pool, interval_s: float) -> None:
        """Once. `state` is the server's from then on."""
        try:
            page = await self._page(pool, min(max(interval_s, LEAST_PATIENCE_S), MOST_PATIENCE_S))
        except EndpointError as error:
            self.state = replace(self.state, now=None, problem=str(error))
            return
        at_s = self._clock()
        model = await self._model(pool)
        self._window.add(Reading(at_s, page))
        found = now(self._window, page, self._yardstick, model)
        self.state = ServerState(self.state.url, model, found, "", time.time(), self._window.resets)

    async def _page(self, pool: Pool, patience_s: float) -> Page:
        timeouts = Timeouts(connect_s=patience_s, first_token_s=patience_s, idle_s=patience_s)
        return await known_page(pool, self._endpoint, timeouts)

    async def _model(self, pool: Pool) -> str | None:
        """The first that is served: asked again after a server was away, as it may be another then."""
        if self.state.now is not None:
            return self.state.model
        try:
            async with asyncio.timeout(LEAST_PATIENCE_S):
                return next(iter(await list_served(pool, self._endpoint)), None)
        except (EndpointError, TimeoutError):
            return None
