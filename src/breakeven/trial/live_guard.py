"""What ends the measuring of a side: its process dies, or it fails too often or answers garbage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from breakeven.compare.degenerate import is_degenerate
from breakeven.errors import ServerError
from breakeven.servers.watch import Bounds, CandidateWatch, until_death
from breakeven.trace.records import RequestTrace
from breakeven.trial.live_service import Service

LAST_LOOKS_S = 5.0
"""Requests fail before it is seen that the process has ended, which says more."""


async def while_alive(service: Service, name: str, work: Coroutine[Any, Any, None]) -> None:
    """To the end of `work`. Raises ServerError where the process ends meanwhile; what `work` raises.

    Both sides are measured in it: looking costs the machine something, and has to cost both the same.
    """
    alarm = asyncio.Event()
    death = asyncio.ensure_future(until_death(service.lifecycle, service.dialect, name, alarm))
    asking = asyncio.ensure_future(work)
    try:
        await asyncio.wait({death, asking}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done() and asking.exception() is not None:
            alarm.set()
            await asyncio.wait({death}, timeout=LAST_LOOKS_S)
        if death.done():
            raise ServerError(death.result())
        asking.result()
    finally:
        for task in (death, asking):
            task.cancel()
        await asyncio.wait({death, asking})


def candidate_guard(bounds: Bounds, baseline: Sequence[RequestTrace]) -> Callable[[RequestTrace], None]:
    """What each of a candidate's answers is shown to. Raises ServerError once there is to be no further."""
    watch = CandidateWatch(bounds, is_degenerate, baseline)

    def see(trace: RequestTrace) -> None:
        reason = watch.see(trace)
        if reason is not None:
            raise ServerError(reason)

    return see
