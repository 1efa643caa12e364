"""One request of an OpenAI-compatible server: asked, streamed, and made into a RequestTrace."""

from __future__ import annotations

from time import perf_counter_ns

from breakeven.client.advice import http_error, redirect_error, without_key
from breakeven.client.assemble import Asked, assemble
from breakeven.client.body import AskFor, max_tokens_of, most_tokens, request_body
from breakeven.client.endpoint import Endpoint
from breakeven.client.exchange import Exchange
from breakeven.client.fetch import get_text
from breakeven.client.limit import ReplyLimit
from breakeven.client.preflight import list_served, preflight
from breakeven.client.stream import ReplyStream
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool, perform
from breakeven.client.wire import Call
from breakeven.errors import BreakevenError, EndpointError
from breakeven.trace.records import RequestTrace
from breakeven.workload.prompts import Request, Sampling

__all__ = [
    "DEFAULT_ASK_FOR",
    "DEFAULT_TIMEOUTS",
    "AskFor",
    "Timeouts",
    "ask",
    "get_text",
    "list_served",
    "preflight",
]

EVENT_STREAM = "text/event-stream"
DEFAULT_TIMEOUTS = Timeouts()
DEFAULT_ASK_FOR = AskFor()


async def ask(
    pool: Pool,
    endpoint: Endpoint,
    request: Request,
    sampling: Sampling,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    clock_zero_ns: int = 0,
    scheduled_ns: int | None = None,
    ask_for: AskFor = DEFAULT_ASK_FOR,
) -> RequestTrace:
    """Asks once. A failure is a trace with `error` set and all that came before it; only cancellation is
    raised.

    `clock_zero_ns` is the time.perf_counter_ns() of the run's start, from which the trace's times count.
    `scheduled_ns`, if an open loop set it, counts from there too.
    """
    most = most_tokens(request, sampling)
    stream = ReplyStream(endpoint.request_url, None if most is None else ReplyLimit(most))
    exchange = Exchange(stream)
    began_ns = perf_counter_ns()
    error: BreakevenError | None = None
    try:
        body = request_body(endpoint, request, sampling, ask_for)
        await perform(pool, endpoint, Call(endpoint.request_url, body, EVENT_STREAM), exchange, timeouts)
        await _check_status(pool, endpoint, exchange, stream)
        stream.close(exchange.read_ns or began_ns, max(exchange.reads - 1, 0))
    except BreakevenError as failure:
        error = without_key(endpoint, failure)
    await pool.turn()
    asked = Asked(request, max_tokens_of(request, sampling), clock_zero_ns, scheduled_ns, began_ns)
    return assemble(asked, exchange, stream.reader, error)


async def _check_status(pool: Pool, endpoint: Endpoint, exchange: Exchange, stream: ReplyStream) -> None:
    status = exchange.status or 0
    if status < 300:
        return
    url = endpoint.request_url
    if status < 400:
        raise redirect_error(url, status, stream.location)
    models = await _models_if_any(pool, endpoint) if status == 404 else ()
    raise http_error(endpoint, url, status, stream.document, models)


async def _models_if_any(pool: Pool, endpoint: Endpoint) -> tuple[str, ...]:
    try:
        return await list_served(pool, endpoint)
    except EndpointError:
        return ()
