"""When requests are sent: as replies end (closed loop), or when a clock says so (open loop)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TypeVar

import numpy as np

from breakeven.errors import UsageError

Item = TypeVar("Item")
Fire = Callable[[Item, int | None], Awaitable[None]]
"""Sends one request and waits for its end. The int is when it was due, by time.perf_counter_ns()."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """`concurrency` requests in flight: the next is sent when one ends."""

    concurrency: int = 1

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise UsageError(
                f"a concurrency of {self.concurrency} sends nothing: type --concurrency 1 or more"
            )

    async def drive(self, source: Iterator[Item], fire: Fire[Item]) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.concurrency):
                group.create_task(_one_after_another(source, fire))


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests sent at set times, whether or not earlier ones have ended."""

    rate_per_s: float
    poisson: bool = True
    """Exponential gaps, as independent users make; otherwise equal ones."""
    seed: int = 0
    max_in_flight: int | None = None
    """Beyond it a request waits, and its lateness is recorded."""

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < float("inf"):
            raise UsageError(
                f"a rate of {self.rate_per_s} requests per second cannot be kept: type --rate above 0"
            )
        if self.max_in_flight is not None and self.max_in_flight < 1:
            raise UsageError("with nothing allowed in flight nothing is sent: allow 1 or more")

    def offsets_ns(self) -> Iterator[int]:
        """When each request is due, from the start of the run; endless. The sums of the gaps do not drift."""
        if not self.poisson:
            number = 0
            while True:
                yield round(number * 1e9 / self.rate_per_s)
                number += 1
        random = np.random.default_rng(self.seed)
        due_s = 0.0
        while True:
            due_s += random.exponential(1 / self.rate_per_s)
            yield round(due_s * 1e9)

    async def drive(self, source: Iterator[Item], fire: Fire[Item]) -> None:
        start_ns = perf_counter_ns()
        slots = None if self.max_in_flight is None else asyncio.Semaphore(self.max_in_flight)
        async with asyncio.TaskGroup() as group:
            for request, offset_ns in zip(source, self.offsets_ns(), strict=False):
                due_ns = start_ns + offset_ns
                await asyncio.sleep(max((due_ns - perf_counter_ns()) / 1e9, 0))
                if slots is not None:
                    await slots.acquire()
                task = group.create_task(_fire(request, due_ns, fire))
                if slots is not None:
                    task.add_done_callback(lambda _: slots.release())


async def _one_after_another(source: Iterator[Item], fire: Fire[Item]) -> None:
    for request in source:
        await fire(request, None)


async def _fire(request: Item, due_ns: int, fire: Fire[Item]) -> None:
    await fire(request, due_ns)
