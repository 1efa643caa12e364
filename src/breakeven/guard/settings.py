"""GuardSettings: what a user may set of a guard."""

from __future__ import annotations

import math
from dataclasses import dataclass

from breakeven.errors import UsageError

MOST_DRAFT = 64
"""Tokens of the longest draft that may be asked for."""
MOST_MATCH = 1024
MOST_ALLOWANCE = 1_000_000


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Raises UsageError for values that cannot be."""

    epsilon: float = 0.02
    """The share of its plain decode speed that a request may lose: its speedup is 1 − epsilon at least, by
    the step times that the policy is told. Infinity: no bound."""
    most_tokens: int = 10
    """Of a draft."""
    least_match: int = 1
    """Tokens of the shortest match that is drafted from …"""
    most_match: int = 32
    """… and of the longest that is looked for."""
    allowance_steps: int = 0
    """A request may lose from its first step on what one of so many tokens may lose, so that drafts begin
    sooner; a reply of fewer tokens may then lose a larger share. 0: the bound holds for any reply."""

    def __post_init__(self) -> None:
        if not (0 <= self.epsilon < 1 or self.epsilon == math.inf):
            raise UsageError(f"epsilon {self.epsilon:g}: give a share from 0 to below 1, such as 0.02")
        if not 1 <= self.most_tokens <= MOST_DRAFT:
            raise UsageError(f"most_tokens {self.most_tokens}: give 1 to {MOST_DRAFT}")
        if not 1 <= self.least_match <= self.most_match <= MOST_MATCH:
            raise UsageError(
                f"matches of {self.least_match} to {self.most_match} tokens: give 1 or more, least_match at "
                f"most most_match, and that at most {MOST_MATCH}"
            )
        if not 0 <= self.allowance_steps <= MOST_ALLOWANCE:
            raise UsageError(f"allowance_steps {self.allowance_steps}: give 0 to {MOST_ALLOWANCE}")

    @property
    def spending(self) -> float:
        """Plain steps that may be lost for each token emitted: a speedup of 1 − epsilon takes
        1 / (1 − epsilon) plain steps a token."""
        return math.inf if self.epsilon == math.inf else self.epsilon / (1 - self.epsilon)
