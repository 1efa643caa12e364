"""Failures: tells a server that is gone from one that fails now and then."""

from __future__ import annotations

from breakeven.errors import ConnectFailed, EndpointError
from breakeven.trace.records import RequestTrace

GIVE_UP_AFTER = 10
"""Failures in a row after which the server is taken for gone, …"""
GONE_AFTER = 3
"""… or so many in a row to which nothing answered at all."""


class Failures:
    """How many there were in a row."""

    def __init__(self, limit: int = GIVE_UP_AFTER) -> None:
        self.limit = limit
        self._in_a_row = 0
        self._unanswered = 0

    def see(self, trace: RequestTrace) -> None:
        """Raises EndpointError once `limit` requests in a row failed, or GONE_AFTER met no server."""
        if trace.error is None:
            self._in_a_row = self._unanswered = 0
            return
        self._in_a_row += 1
        self._unanswered = self._unanswered + 1 if trace.error.kind == ConnectFailed.__name__ else 0
        if self._in_a_row >= self.limit or self._unanswered >= GONE_AFTER:
            raise EndpointError(
                f"{self._in_a_row} requests in a row failed, the last with: {trace.error.message}"
            )
