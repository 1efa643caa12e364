"""Watching several servers at once: none waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from breakeven.client.transport import Pool
from breakeven.watch.server import Server


async def watch(
    servers: Sequence[Server],
    interval_s: float,
    tell: Callable[[], None],
    tell_every_s: float,
    seconds: float | None = None,
) -> None:
    """Looks at each server every `interval_s`, and calls `tell` every `tell_every_s` and at the end, for
    `seconds` or until cancelled. Raises what `tell` raises."""
    async with Pool() as pool:
        work = [server.keep_looking(pool, interval_s) for server in servers]
        tasks = [asyncio.ensure_future(one) for one in (*work, _telling(tell, tell_every_s))]
        try:
            ended, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            tell()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def look_twice(servers: Sequence[Server], interval_s: float) -> None:
    """What happens in one interval."""
    async with Pool() as pool:
        for pause_s in (0.0, interval_s):
            await asyncio.sleep(pause_s)
            await asyncio.gather(*(server.look(pool, interval_s) for server in servers))


async def _telling(tell: Callable[[], None], every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        tell()
