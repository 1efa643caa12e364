"""What looks after a side while it is measured: at a candidate's answers, and whether the process lives."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from breakeven.engines.dialect import Dialect
from breakeven.errors import UsageError
from breakeven.servers.lifecycle import Lifecycle, State
from breakeven.servers.looks import ODD_LOOKS, Looks
from breakeven.servers.readiness import has_tokens
from breakeven.servers.startup_log import StartupLog
from breakeven.trace.records import RequestTrace
from breakeven.units import share

ALARMED_LOOK_S = 0.5
"""Between two looks once requests fail."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a candidate may do wrong before it is taken out. Each bound is a share of its latest requests that
    has to be exceeded, on top of the share of all of the baseline's that were like that: where the two add up
    to 1, nothing exceeds it, and with 1 nothing ever does.

    Raises UsageError for bounds that are none.
    """

    error_share: float = 0.1
    """Of the latest requests, those that failed or came without a token."""
    garbage_share: float = 0.5
    """Of the latest requests with an answer, those whose answer is garbage."""
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


IsGarbage = Callable[[RequestTrace], bool]
"""Tells degenerate text, such as a short loop."""


class CandidateWatch:
    """Sees the traces of one side; `reason` is set once it must be rolled back, and stays."""

    def __init__(
        self, bounds: Bounds, is_garbage: IsGarbage, baseline: Collection[RequestTrace] = ()
    ) -> None:
        """`baseline` shows what the server does by itself: some models loop without speculation, and some
        prompts are refused."""
        self.reason: str | None = None
        self._is_garbage = is_garbage
        answered = [trace for trace in baseline if not _has_failed(trace)]
        errors = _share(len(baseline) - len(answered), len(baseline))
        garbage = _share(sum(map(is_garbage, answered)), len(answered))
        self._failed = _Latest(bounds, bounds.error_share + errors)
        self._garbage = _Latest(bounds, bounds.garbage_share + garbage)
        self._last_error = ""

    def see(self, trace: RequestTrace) -> str | None:
        """The reason to end the trial, if there is one by now."""
        failed = _has_failed(trace)
        if failed:
            self._last_error = trace.error.message if trace.error else "an answer without a token"
        self._failed.add(failed)
        if not failed:
            self._garbage.add(self._is_garbage(trace))
        self.reason = self.reason or self._errors() or self._degenerate()
        return self.reason

    def _errors(self) -> str | None:
        if not self._failed.exceeds:
            return None
        return f"{self._failed.describe('requests failed')}; the last: {self._last_error}"

    def _degenerate(self) -> str | None:
        if not self._garbage.exceeds:
            return None
        return f"{self._garbage.describe('answers are degenerate text')}: the candidate answers garbage"


class _Latest:
    """How many of the latest were bad, and how many may be."""

    def __init__(self, bounds: Bounds, most: float) -> None:
        self._seen: deque[bool] = deque(maxlen=bounds.window)
        self._least = bounds.least
        self._most = most

    def add(self, is_bad: bool) -> None:
        self._seen.append(is_bad)

    @property
    def exceeds(self) -> bool:
        bad = sum(self._seen)
        return bad >= self._least and bad > self._most * len(self._seen)

    def describe(self, what: str) -> str:
        return f"{sum(self._seen)} of the latest {len(self._seen)} {what}, more than {share(self._most)}"


def _has_failed(trace: RequestTrace) -> bool:
    return trace.error is not None or not has_tokens(trace)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


async def until_death(lifecycle: Lifecycle, dialect: Dialect, name: str, alarm: asyncio.Event) -> str:
    """Returns once the process of the side `name` does not run any more, with why; runs beside the measuring,
    and is cancelled after it. Once `alarm` is set, as requests fail, it is looked at more often, and the
    first look that finds it otherwise than running decides.

    Raises ServerError where its state cannot be looked at, again and again.
    """
    looks = Looks(lifecycle)
    async with StartupLog(lifecycle, dialect, monotonic) as log:
        while True:
            state = await looks.state()
            if state is not None and _is_gone(looks, state, alarm):
                detail = f" ({state.detail})" if state.detail else ""
                return f"the {name}'s process is {state.condition}{detail}{await log.why()}"
            await _pause(alarm, lifecycle.look_s)


def _is_gone(looks: Looks, state: State, alarm: asyncio.Event) -> bool:
    if state.condition == "running":
        return False
    return alarm.is_set() or looks.is_over(state) or looks.odd >= ODD_LOOKS


async def _pause(alarm: asyncio.Event, look_s: float) -> None:
    if alarm.is_set():
        await asyncio.sleep(min(ALARMED_LOOK_S, look_s))
        return
    with suppress(TimeoutError):
        await asyncio.wait_for(alarm.wait(), look_s)
