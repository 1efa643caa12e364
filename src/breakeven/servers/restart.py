"""Restart: the signs by which what answers at a URL is seen to have been restarted."""

from __future__ import annotations

import time
from contextlib import suppress

from breakeven.acceptance.prometheus import started
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS, get_text
from breakeven.client.transport import Pool
from breakeven.errors import ConnectFailed, EndpointError, HttpError, ProtocolError, TimedOut, UsageError
from breakeven.servers.startup_log import StartupLog

DOWN = (ConnectFailed, TimedOut, ProtocolError)
"""A port that a proxy of containers holds open is closed again without an answer."""
PATIENCE_S = 30.0
"""For a sign to come after the first answer: a log may lag behind."""


class Restart:
    """Any one of these is a sign: the URL did not answer since the restart; the process that answers started
    after it, by its own clock (`process_start_time_seconds` of /metrics); the log says that it serves."""

    def __init__(
        self, pool: Pool, endpoint: Endpoint, log: StartupLog, began: float, least_s: float = 0.0
    ) -> None:
        """`began` is the time.monotonic() just before it; for `least_s` since then it is not given up."""
        self._pool = pool
        self._endpoint = endpoint
        self._log = log
        self._began_unix_s = time.time() - (time.monotonic() - began)
        self._least_until_s = began + least_s
        self._is_seen = False
        self._answered_s: float | None = None

    def see(self, kind: str, status: int | None) -> None:
        """A request failed like that: with a name of an EndpointError, or a status."""
        down = kind in {error.__name__ for error in DOWN}
        self._is_seen = self._is_seen or down or (status is not None and status >= 500)

    async def look(self) -> None:
        """While its process does not run yet: whether something answers nevertheless."""
        if self._is_seen:
            return
        try:
            await get_text(self._pool, self._endpoint, "/v1/models", QUICK_TIMEOUTS)
        except HttpError as error:
            self.see(type(error).__name__, error.status)
        except EndpointError as error:
            self.see(type(error).__name__, None)

    async def is_seen(self) -> bool:
        """Asked after each answer. Raises UsageError once no sign is to be hoped for, as it is while the log
        tells of a start."""
        self._is_seen = self._is_seen or self._log.serves or await self._started_since()
        now = time.monotonic()
        self._answered_s = now if self._answered_s is None else self._answered_s
        until_s = max(self._answered_s + PATIENCE_S, self._least_until_s)
        if not self._is_seen and self._log.phase is None and now > until_s:
            raise UsageError(
                f"{self._endpoint.base_url} reaches a server that was not restarted: it answered all along. "
                "A gateway, or another replica, hides the one that was: type the address of that one alone "
                "as --url"
            )
        return self._is_seen

    async def _started_since(self) -> bool:
        with suppress(EndpointError, ValueError):
            page = await get_text(self._pool, self._endpoint, "/metrics", QUICK_TIMEOUTS)
            return float(started(page) or "nan") > self._began_unix_s
        return False
