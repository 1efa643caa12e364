"""Replies that end in a short loop: they inflate acceptance, and say nothing of real text."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def is_degenerate(trace: RequestTrace) -> bool:
    """Whether the reply's last part is a loop, by token ids if the server gave them, else by characters."""
    ids = trace.output_token_ids
    if ids is not None:
        return ends_in_loop(ids) or ends_in_loop(ids[:-1])
    text = (trace.reasoning + trace.text + trace.tool_calls).rstrip()
    return ends_in_loop(text, _CHARACTERS_PER_TOKEN)


def ends_in_loop(sequence: Sequence[object], units_per_token: int = 1) -> bool:
    """Whether the end of `sequence` repeats with a period of at most MAX_PERIOD_TOKENS for long enough.

    Each period p costs one comparison of the end with itself shifted by p, over max(4 p, 64) tokens at most:
    the cost does not grow with the reply.
    """
    n = len(sequence)
    share = max(SHORT_LOOP_TOKENS * units_per_token, math.ceil(LOOP_SHARE * n))
    enough = min(LONG_LOOP_TOKENS * units_per_token, share)
    for period in range(1, min(MAX_PERIOD_TOKENS * units_per_token, n // MIN_PERIODS) + 1):
        length = max(enough, MIN_PERIODS * period)
        if length > n:
            return False
        if sequence[-1] != sequence[-1 - period]:
            continue
        if sequence[n - length : n - period] == sequence[n - length + period :]:
            return True
    return False
