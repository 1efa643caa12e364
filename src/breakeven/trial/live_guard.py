"""What ends the measuring of a side: its process dies, or it fails too often or answers garbage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from breakeven.compare.degenerate import is_degenerate
from breakeven.errors import ServerError
from breakeven.servers.watch import LOOK_S, Bounds, CandidateWatch, until_death
from breakeven.trace.records import RequestTrace
from breakeven.trial.live_records import Service

LAST_LOOK_S = 3 * LOOK_S
"""Requests fail before it is seen that the process has ended, which says more."""


async def while_alive(service: Service, name: str, work: Coroutine[Any, Any, None]) -> None:
    """To the end of `work`. Raises ServerError where the process ends meanwhile; what `work` raises.

    Both sides are measured in it: looking costs the machine something, and has to cost both the same.
    """
    death = asyncio.ensure_future(until_death(service.lifecycle, service.dialect, name))
    asking = asyncio.ensure_future(work)
    try:
        await asyncio.wait({death, asking}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done() and asking.exception() is not None:
            await asyncio.wait({death}, timeout=LAST_LOOK_S)
        if death.done():
            raise ServerError(death.result())
        asking.result()
    finally:
        for task in (death, asking):
            task.cancel()
        await asyncio.wait({death, asking})


def candidate_guard(bounds: Bounds, baseline: Sequence[RequestTrace]) -> Callable[[RequestTrace], None]:
    """What each of a candidate's answers is shown to. It raises ServerError once there is to be no further.

    `baseline` shows how much garbage the model answers by itself. Where that is so much that nothing could be
    worse by the bound, garbage is not looked for.
    """
    answered = [trace for trace in baseline if trace.error is None]
    share = sum(map(is_degenerate, answered)) / len(answered) if answered else 0.0
    can_tell = share + bounds.garbage_share <= 1
    watch = CandidateWatch(bounds, is_degenerate if can_tell else lambda trace: False, share)

    def see(trace: RequestTrace) -> None:
        reason = watch.see(trace)
        if reason is not None:
            raise ServerError(reason)

    return see
