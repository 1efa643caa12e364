"""GuardedSteps: what the guard does in each step of a vLLM, without vLLM: tokens in, drafts out.

A call comes at the end of each step. The time from one call to the next is the step's, as vLLM works without
pause while it has requests; where prompts were computed in it too, it is told as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.cost.curve import Curve
from breakeven.guard.live_cost import LiveCost
from breakeven.guard.policy import Policy
from breakeven.guard.settings import GuardSettings
from breakeven.guard.survival import Survival
from breakeven.guard.vllm_rows import Row, Rows

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]

LEARNED_EVERY_S = 1.0
"""Between two copies of the learned step times, which another thread may read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a server."""

    most_tokens: int
    """Of a draft: num_speculative_tokens."""
    max_model_len: int
    most_in_step: int
    """Tokens that a step is scheduled at most."""


@dataclass(frozen=True, slots=True)
class Learned:
    """Step times as they were at some moment."""

    sequences: int
    seconds: Floats
    """Of a step of 0, 1, … tokens."""


class NoCost:
    """Step times that are never known: with them a policy learns, and drafts nothing."""

    def seconds(self, most: int, sequences: int | None = None) -> None:
        """None."""

    def probe(self, sequences: int, most: int) -> int:
        """None is due."""
        return 0


class GuardedSteps:
    """The requests of one server, and what is known of it."""

    def __init__(
        self,
        settings: GuardSettings,
        limits: Limits,
        clock: Callable[[], float],
        *,
        survival: Survival | None = None,
        curve: Curve | None = None,
        shadow: bool = False,
    ) -> None:
        """`clock` gives seconds. `curve` is what steps are believed to take, and `survival` what is known of
        drafts; None for nothing. With `shadow` nothing is drafted."""
        self.cost = LiveCost(curve)
        self.policy = Policy(settings, NoCost() if shadow else self.cost, survival)
        self.learned: Learned | None = None
        self._settings, self._limits, self._clock = settings, limits, clock
        self._rows = Rows(self.policy.begin, self.policy.end, settings.least_match, settings.most_match)
        self._last: float | None = None
        self._learned_at = clock()

    def step(
        self, sampled: Sequence[Sequence[int]], counts: NDArray[np.int32], ids: NDArray[np.int32]
    ) -> list[list[int]]:
        """The drafts for each row of the batch; arguments as Rows.take has them."""
        now = self._clock()
        took_s = None if self._last is None else now - self._last
        self._last = now
        batch = self._rows.take(sampled, counts, ids)
        there = [row for row in batch.rows if row is not None]
        if took_s is not None and there:
            self._tell(there, took_s, batch.prefill)
        self._observe([row for row in there if row.continued], None if batch.prefill else took_s)
        self._copy_learned(now, len(there))
        drafts = self._drafts(there)
        given = iter(drafts)
        return [[] if row is None else next(given) for row in batch.rows]

    def forget(self) -> None:
        """All requests: calls were missed, or will be."""
        self._rows.forget()
        self._last = None

    def _tell(self, rows: list[Row], took_s: float, prefill: bool) -> None:
        tokens = len(rows) + sum(row.given for row in rows)
        self.cost.tell(tokens, len(rows), took_s, prefill=prefill)

    def _copy_learned(self, now: float, sequences: int) -> None:
        if sequences == 0 or abs(now - self._learned_at) < LEARNED_EVERY_S:
            return
        self._learned_at = now
        seconds = self.cost.seconds(sequences + self._most(), sequences)
        self.learned = None if seconds is None else Learned(sequences, seconds.copy())

    def _observe(self, rows: list[Row], took_s: float | None) -> None:
        if rows:
            self.policy.observe([row.state for row in rows], [row.last for row in rows], took_s)

    def _drafts(self, rows: list[Row]) -> list[list[int]]:
        if not rows:
            return []
        share = max(self._limits.most_in_step // len(rows) - 1, 0)
        most = min(self._most(), share)
        found = [row.index.match(min(most, self._room(row))) for row in rows]
        ks = self.policy.decide([row.state for row in rows], found).ks
        drafts = [match.draft[:k].tolist() for match, k in zip(found, ks, strict=True)]
        for row, draft in zip(rows, drafts, strict=True):
            row.draft = tuple(draft)
        return drafts

    def _most(self) -> int:
        return min(self._settings.most_tokens, self._limits.most_tokens)

    def _room(self, row: Row) -> int:
        """The draft and the token after it must fit max_model_len: vllm/v1/core/sched/scheduler.py, 0.32."""
        return max(self._limits.max_model_len - len(row.index) - 1, 0)
