"""What looks after a side while it is measured: at a candidate's answers, and whether the process lives."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from breakeven.engines.dialect import Dialect
from breakeven.errors import UsageError
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.readiness import has_tokens
from breakeven.servers.startup_log import StartupLog
from breakeven.trace.records import RequestTrace
from breakeven.units import share

LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a candidate may do wrong before the trial ends. Raises UsageError for bounds that are none."""

    error_share: float = 0.1
    """Of the latest requests, those that failed or came without a token."""
    garbage_share: float = 0.5
    """Of the latest requests, those that are garbage, beyond the baseline's own share."""
    window: int = 50
    """How many requests are the latest."""
    least: int = 5
    """So many bad ones it takes at least: one failure of two is no rate."""

    def __post_init__(self) -> None:
        for name in ("error_share", "garbage_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} {getattr(self, name)}: give a share from 0 to 1")
        if not 1 <= self.least <= self.window:
            raise UsageError(f"least {self.least}: give 1 to {self.window}, the window")


class CandidateWatch:
    """Sees the traces of one side; `reason` is set once it must be rolled back, and stays."""

    def __init__(
        self,
        bounds: Bounds,
        is_garbage: Callable[[RequestTrace], bool],
        baseline_garbage_share: float = 0.0,
    ) -> None:
        """`is_garbage` tells degenerate text, such as a short loop; some models loop without speculation."""
        self.reason: str | None = None
        self._bounds = bounds
        self._is_garbage = is_garbage
        self._most_garbage = min(bounds.garbage_share + baseline_garbage_share, 1.0)
        self._failed: deque[bool] = deque(maxlen=bounds.window)
        self._garbage: deque[bool] = deque(maxlen=bounds.window)
        self._last_error = ""

    def see(self, trace: RequestTrace) -> str | None:
        """The reason to end the trial, if there is one by now."""
        failed = trace.error is not None or not has_tokens(trace)
        if failed:
            self._last_error = trace.error.message if trace.error else "an answer without a token"
        self._failed.append(failed)
        if not failed:
            self._garbage.append(self._is_garbage(trace))
        self.reason = self.reason or self._errors() or self._degenerate()
        return self.reason

    def _errors(self) -> str | None:
        bad, of = sum(self._failed), len(self._failed)
        if bad < self._bounds.least or bad <= self._bounds.error_share * of:
            return None
        return (
            f"{bad} of the latest {of} requests failed, more than {share(self._bounds.error_share)}; "
            f"the last: {self._last_error}"
        )

    def _degenerate(self) -> str | None:
        bad, of = sum(self._garbage), len(self._garbage)
        if bad < self._bounds.least or bad < self._most_garbage * of:
            return None
        return f"{bad} of the latest {of} answers are degenerate text: the candidate answers garbage"


async def until_death(lifecycle: Lifecycle, dialect: Dialect, name: str) -> str:
    """Returns once the process of the side `name` has ended, with why; runs beside the measuring, and is
    cancelled after it.

    Raises ServerError where its state cannot be looked at.
    """
    async with StartupLog(lifecycle, dialect, monotonic) as log:
        while True:
            state = await lifecycle.state()
            if state.condition != "running":
                detail = f" ({state.detail})" if state.detail else ""
                return f"the {name}'s process is {state.condition}{detail}{await log.why()}"
            await asyncio.sleep(LOOK_S)
