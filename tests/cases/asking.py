"""Asks the fake server through the real client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from breakeven.client.endpoint import Endpoint
from breakeven.client.load import ClosedLoop, LoadReport, run_load
from breakeven.client.openai import AskFor, ask
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool
from breakeven.latency import RequestLatency, request_latency
from breakeven.servers.fake import FakeServer, Script, Served
from breakeven.trace.records import RequestTrace
from breakeven.workload.prompts import Prompt, Request, Sampling


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what the client made of it, and the truth. Both count time by perf_counter_ns()."""

    trace: RequestTrace
    latency: RequestLatency
    served: Served | None
    """None if the server answered without a reply."""

    @property
    def true_ttft_s(self) -> float:
        return (self.served.written_ns[0] - self.served.received_ns) / 1e9

    @property
    def true_tpot_s(self) -> float:
        """(last − first) / tokens after the first write that carried any, as written to the socket."""
        served = self.served
        return (served.written_ns[-1] - served.written_ns[0]) / 1e9 / sum(served.tokens[1:])


def prompt(text: str = "Why is the sky blue?", prompt_id: str = "p", max_tokens: int | None = None) -> Prompt:
    return Prompt(prompt_id, "test", messages=({"role": "user", "content": text},), max_tokens=max_tokens)


async def ask_server(
    server: FakeServer,
    *,
    max_tokens: int = 10_000,
    token_ids: bool = False,
    timeouts: Timeouts | None = None,
    url: str | None = None,
    api: Literal["chat", "completions"] = "chat",
    **sampling: Any,
) -> Asked:
    """One request over a connection of its own."""
    endpoint = Endpoint(url or server.url, api=api, model="fake-model")
    known = len(server.log)
    async with Pool() as pool:
        trace = await ask(
            pool,
            endpoint,
            Request(prompt()),
            Sampling(max_tokens=max_tokens, **sampling),
            timeouts or Timeouts(),
            ask_for=AskFor(token_ids=token_ids),
        )
    served = server.log[-1] if len(server.log) > known else None
    return Asked(trace, request_latency(trace), served)


async def ask_script(script: Script, **options: Any) -> Asked:
    """One request of a server of its own."""
    async with FakeServer(script) as server:
        return await ask_server(server, **options)


async def load(
    server: FakeServer, requests: list[Request], concurrency: int, max_tokens: int = 10_000
) -> tuple[list[RequestTrace], LoadReport]:
    """Many requests in a closed loop."""
    endpoint = Endpoint(server.url, model="fake-model")
    traces: list[RequestTrace] = []
    async with Pool() as pool:

        async def send(request: Request, scheduled_ns: int | None) -> RequestTrace:
            sampling = Sampling(max_tokens=max_tokens)
            return await ask(pool, endpoint, request, sampling, Timeouts(), scheduled_ns=scheduled_ns)

        report = await run_load(requests, send, ClosedLoop(concurrency), traces.append)
    return traces, report
