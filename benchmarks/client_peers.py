"""The clients that benchmarks/client.py compares: one function each, with the same contract.

`async def NAME(url, streams, requests, tokens) -> rows`: asks `requests` times, `streams` at once, and gives
for each request (number, sent_ns, first_ns, last_ns, tokens), all of time.perf_counter_ns(). Each asks
`streams` short requests first, so that connections are open. The peers are written as a good engineer would
write them: one session, no connection limit, a stamp as soon as the bytes are at hand, orjson.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter_ns

import orjson

from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop, run_load
from breakeven.client.openai import ask, preflight
from breakeven.client.transport import Pool
from breakeven.trace.records import RequestTrace
from breakeven.workload.prompts import Prompt, Request, Sampling

Row = tuple[int, int, int, int, int]
Client = Callable[[str, int, int, int], Awaitable[list[Row]]]


PROMPT = "Count the streams."


def body(number: int, tokens: int) -> bytes:
    return orjson.dumps(
        {
            "model": "fake-model",
            "messages": [{"role": "user", "content": PROMPT}],
            "user": str(number),
            "max_tokens": tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


async def breakeven(url: str, streams: int, requests: int, tokens: int) -> list[Row]:
    """The product's own path: load, transport, events, traces."""
    rows: list[Row] = []

    def drop(trace: RequestTrace) -> None:
        pass

    def keep(trace: RequestTrace) -> None:
        if trace.error is not None:
            raise RuntimeError(trace.error.message)
        first, last = trace.events[0].read_ns, trace.events[-1].read_ns
        rows.append((int(trace.prompt_id), trace.sent_ns, first, last, len(trace.events)))

    async with Pool() as pool:
        endpoint = await preflight(pool, Endpoint(url))

        async def send(request: Request, scheduled_ns: int | None) -> RequestTrace:
            sampling = Sampling(extra={"user": request.prompt.id})
            return await ask(pool, endpoint, request, sampling, scheduled_ns=scheduled_ns)

        def asked(numbers: range, most: int) -> Iterator[Request]:
            return (Request(Prompt(str(number), "", text=PROMPT, max_tokens=most)) for number in numbers)

        await run_load(asked(warm_up(streams), 2), send, ClosedLoop(streams), drop)
        await run_load(asked(range(requests), tokens), send, ClosedLoop(streams), keep)
    return rows


async def aiohttp(url: str, streams: int, requests: int, tokens: int) -> list[Row]:
    import aiohttp as library

    connector = library.TCPConnector(limit=0)
    timeout = library.ClientTimeout(total=None)
    headers = {"Content-Type": "application/json"}
    async with library.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:

        async def one(number: int) -> Row:
            data = body(number, tokens if number >= 0 else 2)
            sent_ns = perf_counter_ns()
            async with session.post(f"{url}/v1/chat/completions", data=data) as response:
                return (number, sent_ns, *await read_tokens(response.content.iter_any()))

        await closed_loop(one, streams, warm_up(streams))
        return await closed_loop(one, streams, range(requests))


async def httpx(url: str, streams: int, requests: int, tokens: int) -> list[Row]:
    import httpx as library

    # httpx looks through every kept connection at each request: at 256 streams it does best keeping none.
    # One run each way (httpx 0.28.1, 256 streams × 20 ms, 100 tokens): 10.8k tokens/s against 2.9k, and TTFT
    # 191 ms late against 3,312 ms. Its TTFT thus includes opening a connection; the others' does not.
    limits = library.Limits(max_connections=None, max_keepalive_connections=0)
    headers = {"Content-Type": "application/json"}
    async with library.AsyncClient(limits=limits, timeout=None, headers=headers) as session:  # noqa: S113

        async def one(number: int) -> Row:
            data = body(number, tokens if number >= 0 else 2)
            sent_ns = perf_counter_ns()
            async with session.stream("POST", f"{url}/v1/chat/completions", content=data) as response:
                return (number, sent_ns, *await read_tokens(response.aiter_raw()))

        await closed_loop(one, streams, warm_up(streams))
        return await closed_loop(one, streams, range(requests))


async def read_tokens(reads: AsyncIterator[bytes]) -> tuple[int, int, int]:
    """(first_ns, last_ns, tokens) of one event stream."""
    first_ns = last_ns = tokens = 0
    rest = b""
    async for read in reads:
        now_ns = perf_counter_ns()
        *events, rest = (rest + read).split(b"\n\n")
        for event in events:
            if event.startswith(b"data: {"):
                choices = orjson.loads(event[6:])["choices"]
                if choices and choices[0]["delta"].get("content"):
                    first_ns = first_ns or now_ns
                    last_ns = now_ns
                    tokens += 1
    return first_ns, last_ns, tokens


def warm_up(streams: int) -> range:
    """Numbers of the requests that only open connections."""
    return range(-streams, 0)


async def closed_loop(one: Callable[[int], Awaitable[Row]], streams: int, asked: range) -> list[Row]:
    numbers = iter(asked)

    async def worker(numbers: Iterator[int]) -> list[Row]:
        return [await one(number) for number in numbers]

    return [row for rows in await asyncio.gather(*(worker(numbers) for _ in range(streams))) for row in rows]


CLIENTS: dict[str, Client] = {"breakeven": breakeven, "aiohttp": aiohttp, "httpx": httpx}
