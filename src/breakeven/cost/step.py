"""The cost of one step of a server: what is asked, what is answered, and what every source of it offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from breakeven.errors import UsageError

Source = Literal["measured", "anchored", "modelled"]
"""Best first: the server's own concurrency curve; a measured step and modelled increments; a model alone."""


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of the target model. Raises UsageError for one that cannot be."""

    tokens: int = 1
    """Verified per sequence: the drafted ones and one more; 1 is a plain decode step."""
    sequences: int = 1
    context_tokens: int = 0
    """In the cache of each sequence, the mean over sequences."""

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.sequences < 1 or self.context_tokens < 0:
            raise UsageError(
                f"a step of {self.tokens} tokens × {self.sequences} sequences after {self.context_tokens} "
                "tokens: give at least 1, 1 and 0"
            )

    @property
    def batch_tokens(self) -> int:
        """Of all sequences together."""
        return self.tokens * self.sequences


PLAIN_STEP = Step()
"""One token of one sequence, next to nothing cached."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds and the interval in which the truth is expected."""

    seconds: float
    low: float
    high: float


class StepCost(Protocol):
    """Seconds of a step, from one source."""

    @property
    def source(self) -> Source:
        """Where the seconds come from."""

    def seconds(self, step: Step) -> Estimate:
        """Of the target model alone: a drafter's own time is not in it."""

    def parts(self, step: Step) -> Mapping[str, float]:
        """Seconds by part, which sum to `seconds(step).seconds`."""
