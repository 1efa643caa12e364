"""Probes: when a draft is worth its cost for what it tells of step times, though it may not pay by itself."""

from __future__ import annotations

import numpy as np

FIRST_REST = 32
"""Decode steps from one probe to the next at least."""
MOST_REST = 1024
"""While probes tell what was known, each rest is twice the one before, up to this. A probe in so many steps
that takes three plain ones costs 0.2 % of time; what has changed may be found out as many steps later."""
_NEVER = -(2**40)


class Probes:
    """Remembers at which step each size was last told with drafts, and rests longer when nothing is new.

    Drafts are probed by rungs of 1, 2, 4, 8, … draft tokens beside as many plain ones as there are sequences:
    sizes between two rungs have an upper bound by the larger one. Any drafted step counts as a probe of its
    rung, whoever asked for it.
    """

    def __init__(self, sizes: int, known: int) -> None:
        """For steps of fewer than `sizes` tokens, of which up to `known` were measured before."""
        self._told_at = np.full(sizes, _NEVER, np.int64)
        self._told_at[: known + 1] = 0
        self._rest = FIRST_REST
        self._last = 0

    def told(self, step: int, sequences: int, drafted: int, surprised: bool) -> None:
        """The step drafted so many tokens; `surprised`: it took another time than was believed."""
        before = self._youngest(sequences, 1 << (drafted - 1).bit_length())
        self._told_at[sequences + drafted] = step
        if step - before < self._rest:
            return
        self._last = step
        if surprised:
            self.hurry()
        elif before != _NEVER:
            self._rest = min(2 * self._rest, MOST_REST)

    def hurry(self) -> None:
        """Times have changed: they may change back as soon."""
        self._rest = FIRST_REST

    def due(self, step: int, sequences: int, most: int) -> int:
        """The rung of at most `most` draft tokens that was told longest ago, the smallest of such.

        0: none was told as long ago as the rest, or the last probe was not."""
        if step - self._last < self._rest:
            return 0
        due, rung, oldest = 0, 1, step - self._rest + 1
        while rung <= most and sequences + rung < len(self._told_at):
            told = self._youngest(sequences, rung)
            if told < oldest:
                due, oldest = rung, told
            rung *= 2
        return due

    def _youngest(self, sequences: int, rung: int) -> int:
        """When the rung was told last: its own size, or one that is nearer to it than to the one below."""
        return int(self._told_at[sequences + rung // 2 + 1 : sequences + rung + 1].max(initial=_NEVER))
