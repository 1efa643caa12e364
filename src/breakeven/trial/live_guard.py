"""Guard: ends the measuring of a candidate that dies, fails too often, or answers garbage."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from breakeven.compare.degenerate import is_degenerate
from breakeven.errors import ServerError
from breakeven.servers.watch import LOOK_S, Bounds, CandidateWatch
from breakeven.trace.records import RequestTrace
from breakeven.trial.live_records import Service

LAST_LOOK_S = 3 * LOOK_S
"""Requests fail before it is seen that the process has ended, which says more."""


class Guard:
    """For the candidate of one trial."""

    def __init__(self, service: Service, bounds: Bounds, baseline: Sequence[RequestTrace]) -> None:
        """`baseline` shows how much garbage the model answers by itself."""
        answered = [trace for trace in baseline if trace.error is None]
        share = sum(map(is_degenerate, answered)) / len(answered) if answered else 0.0
        can_tell = share + bounds.garbage_share <= 1
        self._service = service
        self._answers = CandidateWatch(bounds, is_degenerate if can_tell else _never, share)
        self._process = CandidateWatch(bounds, is_degenerate)

    def see(self, trace: RequestTrace) -> None:
        """Raises ServerError once it is to be asked no more."""
        reason = self._answers.see(trace)
        if reason is not None:
            raise ServerError(reason)

    async def over(self, work: Coroutine[Any, Any, None]) -> None:
        """To the end of `work`. Raises ServerError where the process ends meanwhile; what `work` raises."""
        looking = self._process.until_death(self._service.lifecycle, self._service.dialect)
        death, asking = asyncio.ensure_future(looking), asyncio.ensure_future(work)
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


def _never(trace: RequestTrace) -> bool:
    """Where most of the baseline's answers are garbage no candidate's are that much worse."""
    return False
