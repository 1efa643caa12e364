"""Looks: at a server's state again and again, no more often than needed, and what several in a row tell."""

from __future__ import annotations

from time import monotonic

from breakeven.errors import ServerError
from breakeven.servers.lifecycle import Lifecycle, State

MOST_FAILED, FAILING_S = 3, 10.0
"""So many looks that fail in a row, over so many seconds, are no hiccup of a daemon or a cluster any more."""
ODD_LOOKS = 3
"""So many in a row must find a process that neither runs nor has failed: one under load may miss a health
check, and a server that somebody else restarts is known by its answers only."""


class Looks:
    """Keeps what the latest look saw."""

    def __init__(self, lifecycle: Lifecycle, is_returning: bool = False) -> None:
        """`is_returning`: it comes back as it was found, and has time to crash and be started again."""
        self.odd = 0
        """Looks since it was last seen to run."""
        self._state = lifecycle.returning_state if is_returning else lifecycle.state
        self._known: State | None = None
        self._looked_s: float | None = None
        self._failed = 0
        self._failing_since_s = 0.0

    async def state(self, age_s: float = 0.0) -> State | None:
        """How the server is, or was at most `age_s` ago; None where the look failed, which tells nothing yet.

        Raises ServerError once looks have failed in a row, MOST_FAILED of them over FAILING_S.
        """
        if self._looked_s is None or monotonic() - self._looked_s >= age_s:
            self._known = await self._look()
            self._looked_s = monotonic()
        return self._known

    async def _look(self) -> State | None:
        try:
            state = await self._state()
        except ServerError as error:
            self._failing_since_s = self._failing_since_s if self._failed else monotonic()
            self._failed += 1
            if self._failed < MOST_FAILED or monotonic() - self._failing_since_s < FAILING_S:
                return None
            raise ServerError(
                f"it could not be looked at {self._failed} times in a row, the last time because: {error}"
            ) from error
        self._failed = 0
        self.odd = 0 if state.condition == "running" else self.odd + 1
        return state

    def is_over(self, state: State) -> bool:
        """Whether the process of this latest look has ended, beyond doubt."""
        return state.condition == "failed" or (state.condition == "stopped" and self.odd >= ODD_LOOKS)
