"""Ctrl-C, SIGTERM and SIGHUP while a service is changed: the first ends the measuring, none the put-back."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from breakeven.servers.to_its_end import to_its_end
from breakeven.units import duration

Result = TypeVar("Result")
Say = Callable[[str], None]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def wait_words(limit_s: float) -> str:
    """Said to a signal that is not heeded."""
    return (
        "the service is being put back as it was found: wait; what fails is tried again for up to "
        f"{duration(limit_s)}. Ctrl-\\ ends this at once and leaves the service as it is then, which  "
        "breakeven recover  puts back"
    )


@contextmanager
def heeded(say: Say, limit_s: float) -> Iterator[None]:
    """From within the task that the first signal is to cancel. Any further one is answered, and nothing else;
    `limit_s` is that of the put-back.

    Signals that are ignored stay so, as SIGHUP is below nohup. Outside the main thread there are none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    came: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            loop.call_soon_threadsafe(say, wait_words(limit_s))
            return
        interrupt = before[signal.SIGINT]
        if callable(interrupt) and interrupt is not signal.default_int_handler:
            interrupt(signal.SIGINT, frame)
        elif task is not None:
            loop.call_soon_threadsafe(task.cancel)

    heeding = [number for number in SIGNALS if before[number] not in (signal.SIG_IGN, None)]
    try:
        for number in heeding:
            signal.signal(number, handle)
        yield
    finally:
        for number in heeding:
            signal.signal(number, before[number])


async def undisturbed(work: Coroutine[Any, Any, Result], say: Say, limit_s: float) -> Result:
    """Comes to its end though the caller is cancelled meanwhile; that is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = await to_its_end(task, lambda: say(wait_words(limit_s)))
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result
