"""Transport: one exchange over a pooled connection, with its time-outs and its single retry.

The clock is time.perf_counter_ns() throughout the client: monotonic, and the first thing read when bytes
arrive.
"""

from __future__ import annotations

from time import perf_counter_ns

from breakeven.client.connect import Origin, origin_of
from breakeven.client.connection import Connection
from breakeven.client.endpoint import Endpoint
from breakeven.client.exchange import Exchange
from breakeven.client.pool import Pool
from breakeven.client.timeouts import Timeouts
from breakeven.client.watch import Watch
from breakeven.client.wire import Call, encode_request
from breakeven.errors import StreamError

__all__ = ["Pool", "Timeouts", "perform"]


async def perform(pool: Pool, endpoint: Endpoint, call: Call, exchange: Exchange, timeouts: Timeouts) -> None:
    """Sends the call and waits for the end of its reply, which goes to the exchange's consumer.

    A kept connection that dies before any byte of the reply is replaced by a fresh one, once: the server
    closed it while it was idle. Raises ConnectFailed, TimedOut, ProtocolError, StreamError, and what the
    consumer raises.
    """
    origin = origin_of(endpoint)
    request = encode_request(call, endpoint, origin.proxy)
    kept = pool.reuse(origin)
    if kept is not None:
        try:
            return await _perform_on(pool, origin, kept, request, exchange, timeouts)
        except StreamError:
            if exchange.reads:
                raise
    start_ns = perf_counter_ns()
    fresh = await pool.connect(origin, timeouts.connect_s)
    exchange.connect_ns = perf_counter_ns() - start_ns
    return await _perform_on(pool, origin, fresh, request, exchange, timeouts)


async def _perform_on(
    pool: Pool, origin: Origin, connection: Connection, request: bytes, exchange: Exchange, timeouts: Timeouts
) -> None:
    watch = None
    try:
        await pool.turn()
        exchange.restart()
        connection.send(request, exchange)
        watch = Watch(exchange, timeouts)
        await exchange.outcome()
    finally:
        if watch is not None:
            watch.stop()
        pool.release(origin, connection)
