"""Which event loop runs the client: uvloop if it is installed, else asyncio's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """asyncio.run on the fastest loop there is. Ctrl-C cancels the coroutine and raises KeyboardInterrupt."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(coroutine)


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
