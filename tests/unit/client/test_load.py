from __future__ import annotations

import asyncio
import gc
import itertools
import tracemalloc
from collections.abc import Iterator
from time import perf_counter_ns

import pytest

from breakeven.client import loop
from breakeven.client.load import ClosedLoop, LoadReport, OpenLoop, run_load
from breakeven.errors import StorageError, UsageError
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace
from breakeven.workload.prompts import Prompt, Request


def requests(n: int) -> Iterator[Request]:
    return (Request(Prompt(str(i), "c", text="x")) for i in range(n))


def trace(
    request: Request, first_ns: int, last_ns: int, tokens: int = 10, error: RequestError | None = None
) -> RequestTrace:
    events = (Event(first_ns, 0, Kind.CONTENT, 1), Event(last_ns, 1, Kind.CONTENT, tokens - 1))
    texts, usage = ("", "", ""), {"completion_tokens": tokens}
    ids = (request.id, request.prompt.id, "c", 0, 0)
    return RequestTrace(*ids, 16, None, None, first_ns, last_ns, events, *texts, "stop", usage, error=error)


class Server:
    """Takes `seconds` a reply, `slots` at once; notes how many were in flight."""

    def __init__(self, seconds: float = 0.01, slots: int = 1000) -> None:
        self.seconds = seconds
        self.slots = asyncio.Semaphore(slots)
        self.in_flight = self.peak = 0
        self.scheduled: list[int | None] = []

    async def send(self, request: Request, scheduled_ns: int | None) -> RequestTrace:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self.scheduled.append(scheduled_ns)
        try:
            async with self.slots:
                first_ns = perf_counter_ns()
                await asyncio.sleep(self.seconds)
                return trace(request, first_ns, perf_counter_ns())
        finally:
            self.in_flight -= 1


async def run(
    n: int, schedule: ClosedLoop | OpenLoop, server: Server
) -> tuple[LoadReport, list[RequestTrace]]:
    traces: list[RequestTrace] = []
    report = await run_load(requests(n), server.send, schedule, traces.append)
    return report, traces


async def test_a_closed_loop_holds_its_concurrency() -> None:
    server = Server()
    report, traces = await run(40, ClosedLoop(4), server)
    assert sorted(int(t.prompt_id) for t in traces) == list(range(40))
    assert (server.peak, report.finished, report.failed) == (4, 40, 0)
    check = report.self_check
    assert check.asked_concurrency == 4
    assert check.in_flight_mean is not None and 3.8 < check.in_flight_mean <= 4
    assert check.decoding_peak == 4
    assert check.event_loop in ("asyncio", "uvloop")
    assert report.ended_ns > report.started_ns
    assert server.scheduled == [None] * 40


async def test_case_16_a_server_that_decodes_one_at_a_time_voids_the_run() -> None:
    report, _ = await run(40, ClosedLoop(32), Server(0.005, slots=1))
    check = report.self_check
    assert not check.ok and any("decoded one at a time" in reason for reason in check.reasons)
    assert check.decoding_peak == 1
    assert check.decoding_mean == pytest.approx(1, abs=0.05)


async def test_too_few_requests_for_the_concurrency_void_the_run() -> None:
    report, _ = await run(8, ClosedLoop(32), Server())
    assert any("8 requests cannot keep 32 in flight" in reason for reason in report.self_check.reasons)


async def test_a_rate_is_kept_and_arrivals_are_absolute() -> None:
    server = Server(0.05)
    zero_ns = perf_counter_ns()
    report = await run_load(requests(50), server.send, OpenLoop(200, poisson=False), lambda _: None, zero_ns)
    due = [due_ns for due_ns in server.scheduled if due_ns is not None]
    assert [b - a for a, b in itertools.pairwise(due)] == [5_000_000] * 49
    assert due[0] == pytest.approx(report.started_ns, abs=500_000_000)
    check = report.self_check
    assert (
        check.asked_rate_per_s == 200 and check.achieved_rate_per_s is not None and check.late_ms is not None
    )
    assert server.peak > 1


async def test_an_open_loop_that_is_held_back_is_void() -> None:
    server = Server(0.05)
    report, traces = await run(20, OpenLoop(200, poisson=False, max_in_flight=1), server)
    assert (server.peak, len(traces)) == (1, 20)
    assert not report.self_check.ok
    assert any("200 were asked" in reason for reason in report.self_check.reasons)
    assert any("late" in reason for reason in report.self_check.reasons)


def test_poisson_gaps_are_seeded_and_exponential() -> None:
    def offsets(seed: int) -> list[int]:
        return [ns for ns, _ in zip(OpenLoop(100, seed=seed).offsets_ns(), range(20_000), strict=False)]

    assert offsets(1) == offsets(1) != offsets(2)
    gaps = [b - a for a, b in zip(offsets(1), offsets(1)[1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(1e7, rel=0.03)
    assert deviation == pytest.approx(mean, rel=0.05)


def test_constant_arrivals_do_not_drift() -> None:
    offsets = [ns for ns, _ in zip(OpenLoop(3, poisson=False).offsets_ns(), range(3001), strict=False)]
    assert (offsets[0], offsets[3000]) == (0, 1_000 * 10**9)


def test_schedules_that_send_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="--concurrency 1"):
        ClosedLoop(0)
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="--rate above 0"):
            OpenLoop(rate)
    with pytest.raises(UsageError, match="allow 1"):
        OpenLoop(1, max_in_flight=0)


async def test_requests_are_taken_only_as_they_are_sent() -> None:
    taken = 0

    def counted() -> Iterator[Request]:
        nonlocal taken
        for request in requests(100):
            taken += 1
            yield request

    task = asyncio.create_task(run_load(counted(), Server(30).send, ClosedLoop(3), lambda _: None))
    await asyncio.sleep(0.5)
    assert taken == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("schedule", [ClosedLoop(4), OpenLoop(400, poisson=False)])
async def test_cancelling_keeps_what_was_finished(schedule: ClosedLoop | OpenLoop) -> None:
    server, traces = Server(0.02), list[RequestTrace]()
    task = asyncio.create_task(run_load(requests(10_000), server.send, schedule, traces.append))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert traces and server.in_flight == 0


@pytest.mark.parametrize("schedule", [ClosedLoop(4), OpenLoop(400, poisson=False)])
async def test_an_error_from_the_receiver_ends_the_run_as_itself(schedule: ClosedLoop | OpenLoop) -> None:
    server = Server()

    def full(_: RequestTrace) -> None:
        raise StorageError("the disk is full")

    with pytest.raises(StorageError, match="full"):
        await run_load(requests(1000), server.send, schedule, full)
    assert server.in_flight == 0


async def test_failed_requests_are_counted_and_not_judged() -> None:
    async def send(request: Request, _: int | None) -> RequestTrace:
        await asyncio.sleep(0.001)
        return trace(request, 1, 2, error=RequestError("HttpError", "boom", 500))

    report = await run_load(requests(10), send, ClosedLoop(2), lambda _: None)
    assert (report.finished, report.failed) == (10, 10)
    assert report.self_check.decoding_peak is None


async def test_memory_stays_flat() -> None:
    async def send(request: Request, _: int | None) -> RequestTrace:
        await asyncio.sleep(0)
        return trace(request, 1, 2_000_000)

    async def held_at_end(n: int) -> int:
        held: list[int] = []

        def receive(last: RequestTrace) -> None:
            if last.prompt_id == str(n - 1):
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])

        await run_load(requests(n), send, ClosedLoop(32), receive)
        return held[0]

    tracemalloc.start()
    try:
        await held_at_end(1000)
        few, many = await held_at_end(1000), await held_at_end(11_000)
    finally:
        tracemalloc.stop()
    assert many - few < 10_000 * 40


def test_the_loop_runs_and_is_named() -> None:
    async def name() -> str:
        return loop.running_loop_name()

    assert loop.run(name()) in ("uvloop", "asyncio")
