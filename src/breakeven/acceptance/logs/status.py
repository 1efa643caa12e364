"""What the lines of a log say of the work itself: requests in the batch and waiting, and the KV cache."""

from __future__ import annotations

from breakeven.acceptance.logs.report import LogState
from breakeven.acceptance.logs.summary import LogStatus

_MOST_RANKS = 4096


class StatusSums:
    """Takes states in, one after the other; the ranks of one time are added up."""

    def __init__(self) -> None:
        self.output_times = 0
        """Times at which tokens came out."""
        self._times = self._running = self._most_waiting = 0
        self._kv_usage: float | None = None
        self._hit_rate: float | None = None
        self._output = 0.0
        self._computed = self._cached = 0
        self._at: str | None = None
        self._ranks: set[str] = set()
        self._waiting = 0
        self._has_output = False

    def add(self, state: LogState, at: str | None, rank: str) -> None:
        """Takes in what a line told of its rank."""
        if at is None or at != self._at or rank in self._ranks or len(self._ranks) >= _MOST_RANKS:
            self._begin(at)
        self._ranks.add(rank)
        self._running += state.running
        self._waiting += state.waiting
        if self._waiting > self._most_waiting:
            self._most_waiting = self._waiting
        if state.kv_usage is not None and (self._kv_usage is None or state.kv_usage > self._kv_usage):
            self._kv_usage = state.kv_usage
        if state.hit_rate is not None:
            self._hit_rate = state.hit_rate
        if state.output_s:
            self._output += state.output_s
            self.output_times += not self._has_output
            self._has_output = True

    def add_prompt(self, computed: int, cached: int) -> None:
        """Takes in a prefill: tokens computed, and tokens found in the prefix cache."""
        self._computed += computed
        self._cached += cached

    def summary(self) -> LogStatus | None:
        """All of it; None where no line told the state."""
        if not self._times:
            return None
        prompt = self._computed + self._cached
        return LogStatus(
            times=self._times,
            mean_running=self._running / self._times,
            most_waiting=self._most_waiting,
            most_kv_usage=self._kv_usage,
            prefix_hit_rate=self._cached / prompt if prompt else self._hit_rate,
            mean_output_tokens_s=self._output / self.output_times if self.output_times else None,
        )

    def _begin(self, at: str | None) -> None:
        """Begins another time."""
        self._at = at
        self._times += 1
        self._ranks.clear()
        self._waiting = 0
        self._has_output = False
