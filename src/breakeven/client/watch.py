"""Watch: ends an exchange whose first token or next read does not come. It costs no timer per token."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns

from breakeven.client.exchange import Exchange
from breakeven.client.timeouts import Timeouts
from breakeven.errors import TimedOut


class Watch:
    """Looks at the exchange at the earliest moment at which a time-out could be due, and then again."""

    def __init__(self, exchange: Exchange, timeouts: Timeouts) -> None:
        self._exchange = exchange
        self._timeouts = timeouts
        self._start_ns = perf_counter_ns()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(min(timeouts.first_token_s, timeouts.idle_s), self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        exchange, limits = self._exchange, self._timeouts
        if exchange.settled:
            return
        left_s = self._left_s()
        if left_s > 0:
            self._timer = self._loop.call_later(min(left_s, limits.idle_s), self._look)
        elif exchange.consumer.has_token:
            exchange.settle(TimedOut("idle", limits.idle_s, "--idle-timeout"))
        else:
            exchange.settle(TimedOut("first_token", limits.first_token_s, "--first-token-timeout"))

    def _left_s(self) -> float:
        now_ns, exchange = perf_counter_ns(), self._exchange
        if exchange.consumer.has_token:
            return self._timeouts.idle_s - (now_ns - (exchange.read_ns or self._start_ns)) / 1e9
        return self._timeouts.first_token_s - (now_ns - (exchange.sent_ns or self._start_ns)) / 1e9
