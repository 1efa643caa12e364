"""Work that comes to its end although whoever waits for it is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def to_its_end(
    task: asyncio.Future[Any], heard: Callable[[], None] = lambda: None
) -> asyncio.CancelledError | None:
    """Returns once the task is done, with the last cancellation of the caller; `heard` is told of each."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            heard()
    return cancelled
