"""Start: the lines of a server's start, kept for the facts that its engine tells there."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.acceptance.logs.text import kept, message

MOST_LINES = 2000
LENGTH = 500
"""Of a line, in characters."""


class Start:
    """Lines up to the first request, or the word that the server serves."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_open = True
        self._now: Sequence[bytes] = ()
        self._from = 0

    def begin(self, lines: Sequence[bytes]) -> None:
        """Goes on in these."""
        self._now, self._from = lines, 0

    def open(self, place: int) -> None:
        """Starts anew with the line at that place."""
        self.lines, self.is_open, self._from = [], True, place

    def close(self, place: int) -> None:
        """The start ends with the line at that place."""
        if self.is_open:
            self._take(place + 1)
            self.is_open = False

    def end(self) -> None:
        """These lines end."""
        if self.is_open:
            self._take(len(self._now))
        self._now = ()

    def _take(self, until: int) -> None:
        for raw in self._now[self._from : until]:
            if len(self.lines) == MOST_LINES:
                return
            is_bar = b"%|" in raw
            if raw.strip() and not is_bar:
                self.lines.append(kept(message(raw)[0], LENGTH))
