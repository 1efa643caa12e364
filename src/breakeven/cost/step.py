"""The cost of one step of a server: what is asked, what is answered, and what every source of it offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from breakeven.errors import UsageError
from breakeven.interval import Interval

Source = Literal["measured", "anchored", "modelled"]
"""Best first: the server's own concurrency curve; a measured step and modelled increments; a model alone."""


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of the target model. Raises UsageError for one that cannot be."""

    tokens: float = 1
    """Verified per sequence, the mean over sequences: the drafted ones and one more; 1 is a plain step."""
    sequences: int = 1
    context_tokens: float = 0
    """In the cache of each sequence, the mean over sequences."""

    def __post_init__(self) -> None:
        if not (self.tokens >= 1 and self.sequences >= 1 and self.context_tokens >= 0):
            raise UsageError(
                f"a step of {self.tokens} tokens × {self.sequences} sequences after {self.context_tokens} "
                "tokens: give at least 1, 1 and 0"
            )

    @property
    def batch_tokens(self) -> float:
        """Of all sequences together."""
        return self.tokens * self.sequences


PLAIN_STEP = Step()
"""One token of one sequence, next to nothing cached."""


class StepCost(Protocol):
    """Seconds of a step, from one source. Intervals are of the source's own error, 95 % where it has one."""

    @property
    def source(self) -> Source:
        """Where the seconds come from."""

    def seconds(self, step: Step) -> Interval:
        """Of the target model alone: what a drafter adds is not in it (see drafting.py)."""

    def relative(self, step: Step, base: Step) -> Interval:
        """seconds(step) / seconds(base), with the error of the ratio: errors that both share cancel.

        At least 1, its low end too, for a step with more tokens that is otherwise the same.
        """

    def parts(self, step: Step) -> Mapping[str, float]:
        """Seconds by part, which sum to `seconds(step).estimate`."""

    def warnings(self, step: Step) -> tuple[str, ...]:
        """What must be said beside figures made from this step or smaller ones, each a sentence."""
