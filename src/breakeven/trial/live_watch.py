"""Watch: who is told how a trial of a live service goes."""

from __future__ import annotations

from breakeven.servers.progress import Progress
from breakeven.trace.records import RequestTrace


class Watch:
    """Told how a trial goes; says nothing by itself. A command line overrides what it shows."""

    def begins(self, part: str, number: int, of: int, requests: int) -> None:
        """Part `number` (from 1) of so many, such as `candidate`, in which at most so many are asked."""

    def starting(self, progress: Progress) -> None:
        """How far a restart is."""

    def answered(self, side: str, trace: RequestTrace) -> None:
        """A request of a side came to its end."""

    def said(self, line: str) -> None:
        """What is being done, or has to be known, in one line."""
