"""Which event loop runs the client: uvloop if it is installed, else asyncio's own."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

GARBAGE_THRESHOLD = 10_000
"""New containers before a collection; Python's 700 is less than the events of one long reply."""


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """asyncio.run on the fastest loop there is. Ctrl-C cancels the coroutine and raises KeyboardInterrupt.

    A garbage collection stops the loop, and delays the stamp of every read meanwhile: from here on it is
    rarer, and passes over what lives already.
    """
    with session() as runner:
        return runner.run(coroutine)


@contextmanager
def session() -> Iterator[asyncio.Runner]:
    """As `run`, for several coroutines in turn on one loop, with work of other kinds between them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    with asyncio.Runner(loop_factory=_factory()) as runner:
        yield runner


def running_loop_name() -> str:
    """`uvloop` or `asyncio`, to be recorded beside every measurement."""
    return type(asyncio.get_running_loop()).__module__.split(".")[0]


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
