"""The oracle: perfect windows for the drafts that the guard has."""

from __future__ import annotations

import numpy as np

from breakeven.drafters.base import Table
from breakeven.guard.simulate._walks import best_windows
from breakeven.guard.simulate.looked import Looked
from breakeven.guard.simulate.times import Times
from breakeven.replay.steps import Steps, walk_table

NAME = "oracle"


def oracle_steps(looked: Looked, times: Times) -> Steps:
    """The fastest steps there are: of each draft only right tokens are verified, and only where it pays.

    No policy that chooses windows for these drafts does better on any request. One whose drafts come from
    other matches may, as a fixed n-gram range has.
    """
    positions = looked.tokens.positions
    window = np.zeros(len(looked.agreed), np.int32)
    left = np.zeros(len(looked.agreed))
    best_windows(looked.agreed, positions, looked.first, times.drafted, left, window)
    return walk_table(Table(window, window), looked.tokens, looked.first)
