"""run_load: requests sent by a schedule, their traces handed on one by one; and a self-check of it all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TypeVar

from breakeven.client.lag import LagMonitor
from breakeven.client.loop import running_loop_name
from breakeven.client.schedule import ClosedLoop, OpenLoop
from breakeven.client.selfcheck import SelfCheck, judge
from breakeven.client.witness import Witness
from breakeven.trace.records import RequestTrace

__all__ = ["ClosedLoop", "LoadReport", "OpenLoop", "run_load"]

Item = TypeVar("Item")
Send = Callable[[Item, int | None], Awaitable[RequestTrace]]
"""Asks once. The int is scheduled_ns, since the start of the run; None in a closed loop."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What was done. Times are since the start of the run."""

    started_ns: int
    ended_ns: int
    finished: int
    """Traces handed on, failed ones among them."""
    failed: int
    self_check: SelfCheck


async def run_load(
    requests: Iterable[Item],
    send: Send[Item],
    schedule: ClosedLoop | OpenLoop,
    on_trace: Callable[[RequestTrace], None],
    clock_zero_ns: int = 0,
) -> LoadReport:
    """Takes requests, of whatever type `send` takes, only as they are sent, so that memory stays flat.

    Each trace goes to `on_trace` as soon as it is there. Cancelling drops what is in flight and keeps what
    was handed on. Whatever `send` or `on_trace` raises ends the run in the same way, and is raised.
    """
    witness, lag = Witness(), LagMonitor()

    async def fire(request: Item, due_ns: int | None) -> None:
        witness.start(due_ns)
        trace = None
        try:
            trace = await send(request, None if due_ns is None else due_ns - clock_zero_ns)
        finally:
            witness.end(trace)
        on_trace(trace)

    started_ns = perf_counter_ns()
    lag.start()
    try:
        await schedule.drive(witness.watch(requests), fire)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        lag.stop()
    ended_ns = perf_counter_ns()
    check = judge(schedule, witness, lag, running_loop_name())
    return LoadReport(
        started_ns - clock_zero_ns, ended_ns - clock_zero_ns, witness.finished, witness.failed, check
    )
