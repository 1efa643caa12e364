"""Times: what a step takes by the draft tokens in it, in plain steps of as many sequences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import StepCost
from breakeven.forecast.decode import relative_cost

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Times:
    """Of steps of so many sequences. A lookup takes no time for each token that it drafts."""

    sequences: int
    plain_s: float
    """Seconds of the plain step."""
    drafted: Floats
    """In plain steps, by the draft tokens of the whole batch: verification, and what any drafted step takes
    besides. Entry 0 is 1. Shape (most draft tokens + 1,)."""
    idle: float
    """What having a drafter at all adds to every step, drafted or not, in plain steps."""

    @property
    def whole(self) -> Floats:
        """What a step takes with a drafter; shape (most draft tokens + 1,)."""
        return self.drafted + self.idle

    @property
    def seconds(self) -> Floats:
        """By all tokens of the batch, as a policy is told the cost: entry `sequences` is the plain step, as
        are those before it. Without `idle`, of which no policy decides. Shape (sequences + most draft
        tokens + 1,)."""
        before = np.ones(self.sequences)
        return self.plain_s * np.concatenate([before, self.drafted])


def times_of(
    cost: StepCost, drafting: DraftingCost, sequences: int, most: int, context_tokens: float
) -> Times:
    """Of steps whose sequences draft at most `most` tokens each. Raises what the cost raises."""
    relative = relative_cost(cost, sequences, most, context_tokens)
    plain_s = relative.plain_s.estimate
    drafted = relative.by_tokens[0].copy()
    drafted[1:] += drafting.drafted_step_s.estimate / plain_s
    return Times(sequences, plain_s, drafted, drafting.step_s.estimate / plain_s)
