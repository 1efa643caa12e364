"""Replies that end in a short loop: they inflate acceptance, and say nothing of real text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.trace.records import RequestTrace

MAX_PERIOD_TOKENS = 64
LONG_LOOP_TOKENS = 64
"""A loop of this many tokens counts, however long the reply before it."""
LOOP_SHARE = 0.4
"""So does one that fills this share of the reply …"""
SHORT_LOOP_TOKENS = 16
"""… but has at least this many tokens: short answers may well repeat a word."""
MIN_PERIODS = 4
"""Tables, lists and code repeat their form, seldom their every character four times over."""
_CHARACTERS_PER_TOKEN = 4
"""A usual figure for English, to carry the limits over to text without token ids."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What a reply repeats at its end: in tokens where their ids are kept, else in characters."""

    period: int
    length: int
    """Of all that repeats, a last period that was cut short included."""
    whole: int
    """Of the reply."""
    units_per_token: int = 1

    @property
    def share(self) -> float:
        """Of the reply that is loop."""
        return self.length / self.whole

    @property
    def period_tokens(self) -> int:
        """About, where it is known in characters."""
        return max(round(self.period / self.units_per_token), 1)


def is_degenerate(trace: RequestTrace) -> bool:
    """Whether the reply's last part is a loop."""
    return loop_of(trace) is not None


def loop_of(trace: RequestTrace) -> Loop | None:
    """The loop that a reply ends in, an id that closes it aside; None for none.

    Whether the reply was cut off or ended by itself does not matter: a drafter guesses rows and refrains that
    somebody asked for as well.
    """
    sequence, units_per_token = units_of(trace)
    closed = (sequence, sequence[:-1]) if units_per_token == 1 else (sequence,)
    for part in closed:
        if (period := loop_period(part, units_per_token)) is not None:
            return Loop(period, reach(part, period), len(sequence), units_per_token)
    return None


def is_checked(trace: RequestTrace) -> bool:
    """Whether a loop would be seen: the reply's tokens or its text are kept."""
    return bool(units_of(trace)[0])


def reach(sequence: Sequence[object], period: int) -> int:
    """How many units at the end of `sequence` repeat with this period; linear in their number."""
    start = len(sequence) - period
    while start > 0 and sequence[start - 1] == sequence[start - 1 + period]:
        start -= 1
    return len(sequence) - start


def units_of(trace: RequestTrace) -> tuple[Sequence[object], int]:
    """What a loop is sought in, and how many of it make a token: the reply's token ids, else the characters
    that it shows, without the white space at its end."""
    if trace.output_token_ids is not None:
        return trace.output_token_ids, 1
    return (trace.reasoning + trace.text + trace.tool_calls).rstrip(), _CHARACTERS_PER_TOKEN


def ends_in_loop(sequence: Sequence[object], units_per_token: int = 1) -> bool:
    """Whether the end of `sequence` repeats with a period of at most MAX_PERIOD_TOKENS for long enough."""
    return loop_period(sequence, units_per_token) is not None


def loop_period(sequence: Sequence[object], units_per_token: int = 1) -> int | None:
    """The shortest period, in units, with which the end of `sequence` repeats for long enough; None for none.

    Each period p costs one comparison of the end with itself shifted by p, over max(4 p, 64) tokens at most:
    the cost does not grow with the reply.
    """
    n = len(sequence)
    share = max(SHORT_LOOP_TOKENS * units_per_token, math.ceil(LOOP_SHARE * n))
    enough = min(LONG_LOOP_TOKENS * units_per_token, share)
    for period in range(1, min(MAX_PERIOD_TOKENS * units_per_token, n // MIN_PERIODS) + 1):
        length = max(enough, MIN_PERIODS * period)
        if length > n:
            return None
        if sequence[-1] != sequence[-1 - period]:
            continue
        if sequence[n - length : n - period] == sequence[n - length + period :]:
            return period
    return None
