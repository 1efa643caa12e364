"""MeasuredSide: one side of a live trial while it is up, asked repeat after repeat into its run folder."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter_ns
from typing import Any

from breakeven.acceptance.combine import complete
from breakeven.acceptance.meter import Meter
from breakeven.client.asker import Asker
from breakeven.client.load import ClosedLoop, LoadReport, run_load
from breakeven.client.selfcheck import SelfCheck
from breakeven.latency import request_latency
from breakeven.measure import End, closing, keep_warnings, send_warmup
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import RunMeta
from breakeven.trial.left_out import LEFT_OUT
from breakeven.trial.live_watch import Watch
from breakeven.trial.plan import TrialPlan
from breakeven.trial.windows import Windows
from breakeven.workload.prompts import Prompt, Request, Workload

See = Callable[[RequestTrace], None]
"""Looks after the side. Raises EndpointError or ServerError where it is to be asked no more."""

RELOAD_S = "reload_s"
"""How long its start took, where it was started for this."""
PRIME_TOKENS = 8
NEUTRAL = Workload(
    "warm-up",
    tuple(
        Prompt(f"warm-up-{n}", "warm-up", text=f"Name {n} things that are {what}, one on each line.")
        for n, what in enumerate(("round", "cold", "made of wood", "older than a day"), 3)
    ),
)
"""What is asked where the prompts themselves must stay fresh."""


class MeasuredSide:
    """Made by `measuring`; `begin` once it answers, and again after each of its restarts."""

    def __init__(self, name: str, plan: TrialPlan, writer: RunWriter, watch: Watch, see: See) -> None:
        self.name = name
        self.plan = plan
        self.writer = writer
        self.watch = watch
        self.see = see
        self.traces: list[RequestTrace] = []
        self.left_out: dict[int, tuple[str, ...]] = {}
        """Repeats in which the client fell behind, and why: saved, but not compared."""
        self._measured_s = self._longest_s = 0.0
        self._zero_ns = perf_counter_ns() - writer.last_ns
        self._asker: Asker | None = None
        self._checks: list[SelfCheck] = []
        self._windows: Windows | None = None
        self._earlier = writer.meta.counters, writer.meta.load

    async def begin(self, asker: Asker, fresh: bool) -> None:
        """Warm it up. Raises EndpointError where not even the first request is answered."""
        await warm_up(asker, self.plan, fresh)
        if not self.writer.last_ns:
            end = asker.endpoint
            self.writer.meta = replace(
                self.writer.meta, server=asker.server, model=end.model, url=end.base_url
            )
        if self._asker is None:
            self._zero_ns = perf_counter_ns() - self.writer.last_ns
        self._asker = asker
        self._windows = self._next_windows(asker)

    async def ask(self, repeats: Sequence[int], limit_s: float | None = None) -> None:
        """One repeat after the other, at least one, while there is time. Raises as `repeat`."""
        for place, number in enumerate(repeats):
            if place and not self.has_time(limit_s, 1):
                return
            await self.repeat(number)

    async def repeat(self, number: int) -> None:
        """Every prompt once. Raises what `see` raises, and StorageError."""
        began_ns = perf_counter_ns()
        report = await self._load(
            [Request(prompt, number, block=number) for prompt in self.plan.workload.prompts]
        )
        took_s = (perf_counter_ns() - began_ns) / 1e9
        self._measured_s += took_s
        self._longest_s = max(self._longest_s, took_s)
        self._checks.append(report.self_check)
        if report.self_check.reasons:
            self.left_out[number] = report.self_check.reasons

    def has_time(self, limit_s: float | None, ahead: int) -> bool:
        """For so many more repeats, judged by the longest so far."""
        return limit_s is None or self._measured_s + ahead * self._longest_s <= limit_s

    def note(self, **fields: Any) -> None:
        """Keep further fields in run.json."""
        meta = self.writer.meta
        self.writer.meta = replace(meta, extra={**meta.extra, **fields})

    def elapsed_ns(self) -> int:
        return perf_counter_ns() - self._zero_ns

    def finish(self, end: End) -> None:
        """It came to its end: of its repeats, the one that counts in which the client lagged most."""
        fine = [check for check in self._checks if check.ok] or self._checks
        if not fine:
            return
        earlier = self.writer.meta.extra.get(LEFT_OUT, {})
        self.note(**{LEFT_OUT: {**earlier, **{str(n): why for n, why in self.left_out.items()}}})
        meter = self._windows.meter if self._windows else Meter()
        keep_warnings(self.writer, meter)
        worst = max(fine, key=lambda check: check.event_loop_lag_ms["p99"] or 0.0)
        end(worst, meter.on_top_of(*self._earlier))

    def _next_windows(self, asker: Asker) -> Windows:
        """Each start of the server has its own warm-up, of as many requests at once as are asked later."""
        meter = self._windows.meter if self._windows else Meter(late=0)
        return Windows(asker, replace(meter, late=meter.late + self.plan.concurrency))

    async def _load(self, requests: Sequence[Request]) -> LoadReport:
        """One repeat. Under concurrency it is a window of the server's counters."""
        _, windows = self._begun()
        loop = ClosedLoop(self.plan.concurrency)
        if self.plan.concurrency == 1:
            return await run_load(requests, self._send, loop, self._keep, self._zero_ns)
        before, asked = await windows.open(), len(self.traces)
        report = await run_load(requests, self._send, loop, self._keep, self._zero_ns)
        await windows.close(before, self.traces[asked:])
        return report

    async def _send(self, request: Request, due_ns: int | None) -> RequestTrace:
        """Asked one at a time, with the counts that only /metrics gives."""
        asker, windows = self._begun()
        if self.plan.concurrency > 1:
            return await asker.ask(request, self._zero_ns, due_ns)
        before = await windows.open()
        trace = await asker.ask(request, self._zero_ns, due_ns)
        counted = await windows.close(before, [trace])
        n_tokens = request_latency(trace).output_tokens
        return replace(trace, speculation=complete(trace.speculation, counted, n_tokens))

    def _begun(self) -> tuple[Asker, Windows]:
        if self._asker is None or self._windows is None:
            raise RuntimeError("a side is asked once it has begun")
        return self._asker, self._windows

    def _keep(self, trace: RequestTrace) -> None:
        self.writer.append(trace)
        self.traces.append(trace)
        self.watch.answered(self.name, trace)
        self.see(trace)


@contextmanager
def measuring(
    name: str, plan: TrialPlan, writer: RunWriter, watch: Watch, see: See
) -> Iterator[tuple[MeasuredSide, End]]:
    """A side, and what closes its run as complete; else, whatever happens, it is closed as interrupted."""
    side = MeasuredSide(name, plan, writer, watch, see)
    with closing(writer, side.elapsed_ns) as end:
        yield side, end


async def warm_up(asker: Asker, plan: TrialPlan, fresh: bool) -> None:
    """Requests that are not kept. Raises EndpointError where the first of them fails.

    Every prompt is asked once, cut short, so that each side meets it again with its prefix cached, if the
    server caches any. Where the prompts must stay `fresh`, others are asked.
    """
    if fresh:
        await send_warmup(asker, NEUTRAL, plan.warmup)
        return
    await send_warmup(asker, plan.workload, plan.warmup)
    short = [Request(replace(prompt, max_tokens=PRIME_TOKENS)) for prompt in plan.workload.prompts]

    async def send(request: Request, due_ns: int | None) -> RequestTrace:
        return await asker.ask(request, perf_counter_ns(), due_ns)

    await run_load(short, send, ClosedLoop(plan.concurrency), lambda trace: None)


def unanswered(baseline: RunMeta, workload: Workload) -> RunMeta:
    """Of a candidate that has not answered yet."""
    return replace(
        baseline,
        run_id=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        server=replace(baseline.server, flags=None),
        status="running",
        elapsed_s=None,
        self_check=None,
        counters=None,
        load=None,
        notes=(),
        warnings=workload.warnings,
        extra={},
    )
