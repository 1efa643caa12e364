"""A test-and-set policy, written after the description of Cascade (Saxena et al., arXiv 2506.20675).

Of each request by itself: in a test phase a window is tried for a few steps, and its *utility* is what it
gains over what it costs: tokens per step / time per step, in plain steps. Where the first window has a
utility below 1, speculation is off for the set phase that follows. Else the window is changed by one, upwards
and then downwards, as long as the utility rises, and the best one is set. A set phase is longer than a test,
and longer still while speculation stays off.

Utility, the two phases and switching off are in the paper's abstract. The numbers of steps are not: those
here are of a public implementation after the paper (github.com/angerybob/S2-MoE, MOE_UTILITY_SPEC.md: 4 steps
a trial, 4 windows a test, 16 steps a set phase, doubled up to eightfold while off). START is a choice.

Given to it for nothing: the true cost of every step, which Cascade measures, and the guard's longest matches.
"""

from __future__ import annotations

import numpy as np

from breakeven.guard.simulate._walks import try_and_set
from breakeven.guard.simulate.looked import Looked
from breakeven.guard.simulate.times import Times
from breakeven.replay.steps import Steps

NAME = "test-and-set"
TRIAL_STEPS = 4
SET_STEPS = 16
MOST_TRIALS = 4
MOST_DOUBLED = 3
"""Times that a set phase is doubled."""
START = 3
"""Draft tokens of the first trial."""


def tried_steps(looked: Looked, times: Times) -> Steps:
    """The steps of all requests, with windows as long as `times` has."""
    at = np.empty(len(looked.agreed), np.int64)
    drafted = np.empty(len(looked.agreed), np.int32)
    counts = np.empty(len(looked.tokens), np.int64)
    steps = try_and_set(
        looked.available,
        looked.agreed,
        looked.tokens.positions,
        looked.first,
        times.drafted,
        *(START, TRIAL_STEPS, SET_STEPS, MOST_TRIALS, MOST_DOUBLED),
        *(at, drafted, counts),
    )
    at, drafted = at[:steps], drafted[:steps]
    return Steps(counts, at, drafted, np.minimum(looked.agreed[at], drafted))
