"""How a live trial goes, on standard error: which part, how far a start is, how many requests."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from breakeven.cli.output import stderr
from breakeven.report.progress import Ticker, progress
from breakeven.report.terminal import say
from breakeven.report.text import lines
from breakeven.servers.progress import Progress
from breakeven.trace.records import RequestTrace
from breakeven.trial.live import Watch


class LiveWatch(Watch):
    """A line for each part and each phase of a start, a bar for requests. To be used as a context."""

    def __init__(self) -> None:
        self._bar = ExitStack()
        self._ticker: Ticker | None = None
        self._phase = ""

    def begins(self, part: str, number: int, of: int, requests: int) -> None:
        self._bar.close()
        title = f"{part}, part {number} of {of}" if of > 1 else part
        self._ticker = self._bar.enter_context(progress(title, requests, stderr()))

    def starting(self, progress: Progress) -> None:
        """A line as each phase begins; what a start waits for is no phase, but for a sign that it was one."""
        phase = progress.waiting_for if progress.is_unseen else "starting"
        phase = progress.phase.name if progress.phase else phase
        if phase != self._phase:
            self._phase = phase
            self.said(progress.describe())

    def answered(self, side: str, trace: RequestTrace) -> None:
        if self._ticker is not None:
            self._ticker.advance(note=f"{side} {trace.id}")

    def said(self, line: str) -> None:
        self._bar.close()
        self._ticker = None
        say(stderr(), lines(line, 1000))

    def __enter__(self) -> LiveWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
