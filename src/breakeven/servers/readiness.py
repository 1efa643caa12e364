"""Readiness: a server is ready once a real completion came back with tokens, and then a full batch of them.

That the port is open, or /health says 200, says little: servers answer it while weights are loading, and run
out of memory at the first full batch. The time limit is one of the clock, whatever a single look takes.

Nor does an answer say whose it is: a gateway, another replica or a mistyped port answers all along. After a
restart of ours it has to be seen that what answers was restarted (`Restart`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from time import monotonic, perf_counter_ns
from typing import Any, TypeVar

from breakeven.client.endpoint import Endpoint
from breakeven.client.openai import ask
from breakeven.client.preflight import preflight
from breakeven.client.timeouts import Timeouts
from breakeven.client.transport import Pool
from breakeven.engines.dialect import Dialect
from breakeven.errors import BreakevenError, HttpError, ServerError, UsageError
from breakeven.latency import request_latency
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.looks import Looks
from breakeven.servers.progress import Progress
from breakeven.servers.restart import Restart
from breakeven.servers.startup_log import PhaseTime, StartupLog
from breakeven.trace.records import RequestError, RequestTrace
from breakeven.units import count, duration
from breakeven.workload.prompts import Prompt, Request, Sampling

Answer = TypeVar("Answer")

PAUSE_S = 0.5
"""Between two questions."""
AGE_SHARE = 0.02
"""How much later than it was so, as a share of the time until then, a start may be seen to be over."""
SLOWER = 2.0
"""How much longer than last time a start that comes back may take before a sign of it."""
UNTIMED_S = 300.0
"""The same, in seconds, where no start was timed."""
PROBE_TOKENS = 16
ERROR_PATIENCE_S = 120.0
"""A server that answers nothing but errors (5xx but 503) for so long will not get well."""
LOADING = 503
FINAL = frozenset({400, 401, 403, 405, 413, 422})
"""Statuses that no waiting changes."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A start that came to its end: the cost of a reload."""

    seconds: float
    """From the restart to the first completion with tokens."""
    phases: tuple[PhaseTime, ...]
    endpoint: Endpoint
    """With its model known."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a server has to show."""

    endpoint: Endpoint
    deadline_s: float
    """Since `began`, by the clock."""
    concurrency: int = 1
    """Requests of the probe that follows the first completion."""
    probes: Sequence[Prompt] = ()
    """What the probe asks, such as the trial's own prompts; short ones of ours where there are none."""
    probe_tokens: int = PROBE_TOKENS
    usual_s: float | None = None
    is_returning: bool = False
    """It comes back as it was found: better late than given up, after a crash too."""


def _silent(progress: Progress) -> None:
    pass


async def wait_until_ready(
    lifecycle: Lifecycle,
    dialect: Dialect,
    wanted: Wanted,
    *,
    began: float | None = None,
    watch: Callable[[Progress], None] = _silent,
) -> Ready:
    """Returns once it is ready. `began` is the time.monotonic() just before the restart; None: it was not
    restarted, or by somebody else, and whatever answers counts.

    Raises ServerError where it ends or fails, is not ready in time, or fails under the full batch: with what
    the log says and what the last answer was; UsageError where it answers that the request itself is wrong,
    or where what answers shows no sign of the restart.
    """
    start = monotonic() if began is None else began
    async with StartupLog(lifecycle, dialect, monotonic) as log, Pool() as pool:
        restart = None if began is None else Restart(pool, wanted.endpoint, log, began, _least_s(wanted))
        wait = _Wait(lifecycle, log, pool, wanted, start, watch, restart)
        try:
            async with asyncio.timeout(max(start + wanted.deadline_s - monotonic(), 0)):
                return await wait.until_ready()
        except TimeoutError:
            raise await wait.too_late() from None


def _least_s(wanted: Wanted) -> float:
    """Since the restart, before which a sign of it is not given up: what comes back as it was found may only
    be slow. What never was restarted is found out after it, or at the deadline."""
    if not wanted.is_returning:
        return 0.0
    return UNTIMED_S if wanted.usual_s is None else SLOWER * wanted.usual_s


class _Wait:
    """One wait, from restart to ready."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        log: StartupLog,
        pool: Pool,
        wanted: Wanted,
        start: float,
        watch: Callable[[Progress], None],
        restart: Restart | None,
    ) -> None:
        self.looks = Looks(lifecycle, wanted.is_returning)
        self.restart = restart
        self.look_s = lifecycle.look_s
        self.log = log
        self.pool = pool
        self.wanted = wanted
        self.endpoint = wanted.endpoint
        self.start = start
        self.watch = watch
        self.waiting_for = "its process"
        self.is_unseen = False
        self.errors_since: float | None = None

    async def until_ready(self) -> Ready:
        while not await self._answered():
            self.watch(self._progress())
            await asyncio.sleep(PAUSE_S)
        seconds, phases = monotonic() - self.start, self.log.phases()
        await self._full_batch()
        return Ready(seconds, phases, self.endpoint)

    def _progress(self) -> Progress:
        elapsed_s = monotonic() - self.start
        return Progress(self.log.phase, elapsed_s, self.wanted.usual_s, self.waiting_for, self.is_unseen)

    async def too_late(self) -> ServerError:
        return ServerError(
            f"not ready within {duration(self.wanted.deadline_s)}: at the last look {self.waiting_for}"
            f"{await self.log.why(has_ended=False)}"
        )

    async def _answered(self) -> bool:
        """Whether a completion came back with tokens, from a process that runs and was restarted."""
        if not await self._runs():
            if self.restart is not None:
                await self.restart.look()
            return False
        problem = await self._until_death(self._first_completion())
        self.is_unseen = False
        if problem is None and self.restart is not None and not await self.restart.is_seen():
            self.is_unseen = True
            problem = f"{self.endpoint.base_url} answered, but with no sign of a restart"
        if problem is None:
            return await self._runs(now=True)
        self.waiting_for = problem
        return False

    async def _runs(self, now: bool = False) -> bool:
        """False while it starts, or where that is not known. What answers then may be the server that it
        replaces. A look may be a share of the time so far old, unless it is to be of `now`."""
        waited_s = AGE_SHARE * (monotonic() - self.start)
        state = await self.looks.state(0.0 if now else min(max(PAUSE_S, waited_s), self.look_s))
        if state is None:
            self.waiting_for = "its process could not be looked at"
            return False
        if self.looks.is_over(state):
            detail = f" ({state.detail})" if state.detail else ""
            raise ServerError(
                f"the server {state.condition} before it was ready{detail}{await self.log.why()}"
            )
        if state.condition != "running":
            self.waiting_for = (
                f"its process was {state.condition}{f' ({state.detail})' if state.detail else ''}"
            )
            return False
        return True

    async def _until_death(self, asked: Coroutine[Any, Any, Answer]) -> Answer:
        """An answer that is waited for while the process is looked after."""
        task = asyncio.ensure_future(asked)
        try:
            while not (await asyncio.wait({task}, timeout=PAUSE_S))[0]:
                await self._runs()
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _first_completion(self) -> str | None:
        """None once one came back with tokens, else what came. Raises where waiting does not help."""
        try:
            if self.endpoint.model is None:
                self.endpoint = await preflight(self.pool, self.endpoint)
        except HttpError as error:
            return self._judge(RequestError(type(error).__name__, str(error), error.status))
        except UsageError:
            raise
        except BreakevenError as error:
            return self._judge(RequestError(type(error).__name__, str(error)))
        return self._judge_trace(await self._ask(_prompt(0)))

    def _judge_trace(self, trace: RequestTrace) -> str | None:
        if trace.error is not None:
            return self._judge(trace.error)
        self.errors_since = None
        return None if has_tokens(trace) else f"it answered without a token: {_shape(trace)}"

    def _judge(self, error: RequestError) -> str:
        """What came, in words. Raises UsageError or ServerError where waiting does not help."""
        if self.restart is not None:
            self.restart.see(error.kind, error.status)
        if error.status in FINAL:
            raise UsageError(f"the server answers, and refuses a plain completion: {error.message}")
        broken = error.status is not None and error.status >= 500 and error.status != LOADING
        now = monotonic()
        self.errors_since = (self.errors_since or now) if broken else None
        if self.errors_since is not None and now - self.errors_since > ERROR_PATIENCE_S:
            since = duration(now - self.errors_since)
            raise ServerError(f"for {since} it answered only errors: {error.message}")
        return f"it said {error.message}"

    async def _full_batch(self) -> None:
        """Every request at once; all must come back with tokens. Raises ServerError."""
        n = self.wanted.concurrency
        prompts = [self._probe(number) for number in range(n)]
        self.waiting_for = f"a batch of {n} was not answered yet"
        answers = await self._until_death(self._ask_all(prompts))
        failed = [trace for trace in answers if trace.error is not None or not has_tokens(trace)]
        if failed:
            worst = failed[0]
            said = worst.error.message if worst.error else f"no token: {_shape(worst)}"
            await self._runs(now=True)
            raise ServerError(
                f"it answered alone, but of {count(n, 'request')} at once {len(failed)} failed: {said}"
                f"{await self.log.why()}"
            )
        await self._runs(now=True)

    def _probe(self, number: int) -> Prompt:
        probes = self.wanted.probes
        if not probes:
            return _prompt(number)
        return replace(probes[number % len(probes)], id=f"probe-{number}")

    async def _ask_all(self, prompts: Sequence[Prompt]) -> list[RequestTrace]:
        return await asyncio.gather(*map(self._ask, prompts))

    async def _ask(self, prompt: Prompt) -> RequestTrace:
        left_s = max(self.start + self.wanted.deadline_s - monotonic(), 1.0)
        sampling = Sampling(max_tokens=self.wanted.probe_tokens)
        waits = Timeouts(connect_s=min(10.0, left_s), first_token_s=left_s, idle_s=left_s)
        asked = Request(replace(prompt, max_tokens=None))
        return await ask(self.pool, self.endpoint, asked, sampling, waits, perf_counter_ns())


def has_tokens(trace: RequestTrace) -> bool:
    """Whether it has text, or tokens that were counted."""
    text = trace.text + trace.reasoning + trace.tool_calls
    return bool(text.strip()) or bool(request_latency(trace).output_tokens)


def _prompt(number: int) -> Prompt:
    """Each begins differently: a cached prefix would spare the server what it is to show."""
    text = f"{number + 1}. Count from {number + 1} to {number + 20}, in words."
    return Prompt(f"probe-{number}", "probe", text=text)


def _shape(trace: RequestTrace) -> str:
    return f"finish reason {trace.finish_reason!r}, usage {dict(trace.usage) if trace.usage else None}"
