"""Deaths: servers that died while they served, with the lines around the first that tells of it."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.acceptance.logs.summary import LogDeath
from breakeven.acceptance.logs.text import kept, message

ABOVE, BELOW = 40, 200
"""Lines that are kept: a traceback stands below the first word of a death, an abort's own words above."""
LENGTH = 500
"""Of a line, in characters."""


class Deaths:
    """One for each life of the server: many lines tell of the same."""

    def __init__(self) -> None:
        self._last: tuple[str, str | None, str | None] | None = None
        """Line, its time, and the time before it."""
        self._times = 0
        self._is_dead = self._is_stopped = self._goes_on = False
        self._lines: list[bytes] = []
        self._left = 0
        """Lines below that are still kept."""
        self._now: Sequence[bytes] = ()
        self._from = 0
        self._above: Sequence[bytes] = ()

    def begin(self, lines: Sequence[bytes]) -> None:
        """Goes on in these; the last is empty where they end with a line."""
        self._now, self._from = lines if lines[-1] else lines[:-1], 0

    def end(self) -> None:
        """These lines end."""
        self._take(len(self._now))
        self._above = [*self._above, *self._now[-ABOVE:]][-ABOVE:]
        self._now = ()

    def note(self, line: str, at: str | None, seen: str | None, place: int) -> bool:
        """A line at that place tells of a death; whether it is the first to."""
        if self._is_dead or self._is_stopped:
            return False
        self._last, self._times = (line, at, seen), self._times + 1
        self._is_dead, self._goes_on = True, False
        self._lines = [*self._above, *self._now[max(0, place - ABOVE) : place]][-ABOVE:]
        self._from, self._left = place, BELOW
        return True

    def stop(self) -> None:
        """Somebody stops the server: what breaks off then is no death."""
        self._is_stopped = True

    def restart(self, place: int) -> None:
        """The server starts anew with the line at that place."""
        self._take(place)
        self._left = 0
        self._goes_on = self._times > 0
        self._is_dead = self._is_stopped = False

    def last(self) -> LogDeath | None:
        """The last of them."""
        if self._last is None:
            return None
        line, at, seen = self._last
        lines = (kept(message(raw)[0], LENGTH) for raw in self._lines if raw.strip())
        return LogDeath(self._times, kept(line, LENGTH), at, seen, tuple(lines), self._goes_on)

    def _take(self, until: int) -> None:
        lines = self._now[self._from : min(until, self._from + self._left)]
        self._lines += lines
        self._left -= len(lines)
