"""Asker: how one endpoint is asked, for its replies and for what it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from breakeven.acceptance.page import Page
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS
from breakeven.client.identity import identify
from breakeven.client.metrics import get_page
from breakeven.client.openai import DEFAULT_ASK_FOR, DEFAULT_TIMEOUTS, AskFor, ask, preflight
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool
from breakeven.errors import EndpointError, HttpError
from breakeven.trace.meta import ServerInfo
from breakeven.trace.records import RequestTrace
from breakeven.workload.prompts import Request, Sampling


@dataclass(frozen=True, slots=True)
class Asker:
    """One endpoint, with how it is asked."""

    pool: Pool
    endpoint: Endpoint
    server: ServerInfo
    sampling: Sampling
    timeouts: Timeouts
    ask_for: AskFor

    @classmethod
    async def find(
        cls,
        pool: Pool,
        endpoint: Endpoint,
        sampling: Sampling,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        ask_for: AskFor = DEFAULT_ASK_FOR,
    ) -> Asker:
        """Find the endpoint answering, its model, and what it can tell. Raises what `preflight` does."""
        found = await preflight(pool, endpoint)
        server = await identify(pool, found)
        engine = server.engine
        telling = replace(ask_for, usage_per_chunk=engine == "vllm", spec_details=engine == "sglang")
        return cls(pool, found, server, sampling, timeouts, telling)

    async def ask(
        self, request: Request, clock_zero_ns: int, scheduled_ns: int | None = None
    ) -> RequestTrace:
        return await ask(
            self.pool,
            self.endpoint,
            request,
            self.sampling,
            self.timeouts,
            clock_zero_ns,
            scheduled_ns,
            self.ask_for,
        )

    async def page(self, warn: Callable[[str], None] = lambda why: None) -> Page | None:
        """The server's counters as they stand; None where it has none on /metrics.

        They are not waited for long: a run without them is only poorer. `warn` is told why they are unknown
        where the page exists, or may exist, and could not be read.
        """
        try:
            return await get_page(self.pool, self.endpoint, QUICK_TIMEOUTS)
        except HttpError:
            return None
        except EndpointError as error:
            warn(f"the server's counters of speculation are unknown: {error}")
            return None
