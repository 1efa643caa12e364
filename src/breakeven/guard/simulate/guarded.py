"""The guard, one request after another, by the compiled loop that its policy shares."""

from __future__ import annotations

import numpy as np

from breakeven.guard._kernels import guard_requests
from breakeven.guard.policy import knobs_of, new_totals
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.looked import Looked
from breakeven.guard.simulate.times import Times
from breakeven.guard.survival import Survival
from breakeven.replay.steps import Steps

NAME = "guard"


def guarded_steps(looked: Looked, times: Times, settings: GuardSettings) -> Steps:
    """The steps of a guard that begins without knowledge of the record, and learns in its order."""
    positions = len(looked.agreed)
    at, drafted = np.empty(positions, np.int64), np.empty(positions, np.int32)
    counts = np.empty(len(looked.tokens), np.int64)
    steps = guard_requests(
        *(looked.length, looked.period, looked.available, looked.agreed),
        *(looked.tokens.positions, looked.first, times.seconds),
        *(Survival().counts, knobs_of(settings), at, drafted, counts, new_totals()),
    )
    at, drafted = at[:steps], drafted[:steps]
    return Steps(counts, at, drafted, np.minimum(looked.agreed[at], drafted))
