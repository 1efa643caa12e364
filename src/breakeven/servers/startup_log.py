"""StartupLog: the log of a server that starts, followed as it comes: its phase, and why it died."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from breakeven.engines.dialect import Dialect, Phase
from breakeven.secrets import masked_text
from breakeven.servers.lifecycle import Lifecycle

SERVING = "serving"
"""The phase in which requests are answered."""
KEPT_LINES = 2_000
SHOWN_LINES = 8
DRAIN_S = 2.0
"""For the last lines of a process that has ended: its log may lag behind."""


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase of a start, and how long it took."""

    name: str
    seconds: float


class StartupLog:
    """Reads a lifecycle's log in the background.

    async with StartupLog(lifecycle, dialect, clock) as log:
        ...
    """

    def __init__(self, lifecycle: Lifecycle, dialect: Dialect, clock: Callable[[], float]) -> None:
        self.phase: Phase | None = None
        self.ended = False
        """The log came to its end, as it does when the server ends."""
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._lifecycle = lifecycle
        self._dialect = dialect
        self._clock = clock
        self._entered: list[tuple[str, float]] = [("starting", clock())]
        self._task: asyncio.Task[None] | None = None

    @property
    def serves(self) -> bool:
        """It says that it does."""
        return any(name == SERVING for name, _ in self._entered)

    def phases(self) -> tuple[PhaseTime, ...]:
        """Those so far, in the order in which they began; the last until now."""
        ends = [*(began for _, began in self._entered[1:]), self._clock()]
        spans = zip(self._entered, ends, strict=True)
        return tuple(PhaseTime(name, end - began) for (name, began), end in spans if end > began)

    async def why(self, has_ended: bool = True) -> str:
        """Why it died, as its log has it: the line that says it best, else the last ones. Servers log their
        command lines: secrets are hidden."""
        if self._task is not None and has_ended:
            await asyncio.wait({self._task}, timeout=DRAIN_S)
        failure = self._dialect.failure(tuple(self.lines))
        if failure is not None:
            return f": {masked_text(failure.strip())}"
        tail = list(self.lines)[-SHOWN_LINES:]
        return "; the end of its log:" + "".join(f"\n  {masked_text(line)}" for line in tail) if tail else ""

    async def __aenter__(self) -> StartupLog:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        """A log that cannot be read, for whatever reason, takes the phases away, and nothing else."""
        try:
            async for line in self._lifecycle.logs():
                self._see(line)
            self.ended = True
        except Exception as error:
            self.lines.append(f"(its log cannot be read: {error})")

    def _see(self, line: str) -> None:
        self.lines.append(line)
        phase = self._dialect.phase(line)
        if phase is None:
            return
        self.phase = phase
        if phase.name != self._entered[-1][0]:
            self._entered.append((phase.name, self._clock()))
