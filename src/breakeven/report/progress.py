"""Progress with a remaining time: a bar on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from breakeven.report.text import line
from breakeven.units import duration

PLAIN_EVERY_S = 5.0
TELLS_AFTER_S = 2.0
TELLS_FROM = 0.03
"""Of the work: before both, how long the rest will take is a guess from a start that is slow as a rule."""


class Ticker(Protocol):
    """What the measuring code tells the bar."""

    def advance(self, n: int = 1, note: str | None = None) -> None:
        """`n` more units are done; `note` replaces what stands beside the bar."""

    def set_total(self, total: int | None) -> None:
        """The total became known, or changed; None is unknown."""


@contextmanager
def progress(
    description: str,
    total: int | None,
    console: Console,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Ticker]:
    """Shows on `console` (standard error) how far `total` units are, and how long the rest will take."""
    if not console.is_terminal:
        yield _Lines(description, total, console, clock)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        _Remaining(compact=True),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        yield _Bar(bar, bar.add_task(line(description), total=total, note=""))


def _tells(elapsed_s: float, done: float, total: float | None) -> bool:
    return bool(total) and elapsed_s >= TELLS_AFTER_S and done >= TELLS_FROM * (total or 0)


class _Remaining(TimeRemainingColumn):
    """Empty until enough is done to tell."""

    def render(self, task: Task) -> Text:
        return super().render(task) if _tells(task.elapsed or 0.0, task.completed, task.total) else Text("")


class _Bar:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def advance(self, n: int = 1, note: str | None = None) -> None:
        self._bar.update(self._task, advance=n)
        if note is not None:
            self._bar.update(self._task, note=line(note, 40))

    def set_total(self, total: int | None) -> None:
        self._bar.update(self._task, total=total)


class _Lines:
    """A line at once, then at most one every `PLAIN_EVERY_S`."""

    def __init__(
        self, description: str, total: int | None, console: Console, clock: Callable[[], float]
    ) -> None:
        self._description, self._total, self._console, self._clock = description, total, console, clock
        self._done = 0
        self._started_s = clock()
        self._said_s: float | None = None

    def advance(self, n: int = 1, note: str | None = None) -> None:
        self._done += n
        now_s = self._clock()
        if self._said_s is not None and now_s - self._said_s < PLAIN_EVERY_S:
            return
        self._said_s = now_s
        words = [f"{self._description}: {self._done}", self._of(), self._left(now_s - self._started_s)]
        said = "".join(words) + (f" ({note})" if note else "")
        self._console.print(Text(line(said)), soft_wrap=True)

    def set_total(self, total: int | None) -> None:
        self._total = total

    def _of(self) -> str:
        return "" if self._total is None else f" of {self._total}"

    def _left(self, elapsed_s: float) -> str:
        if self._total is None or self._done >= self._total:
            return ""
        if not _tells(elapsed_s, self._done, self._total):
            return ""
        return f", {duration(elapsed_s / self._done * (self._total - self._done))} left"
