"""Compile the guard's loops before the first request waits for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.guard.settings import GuardSettings
from breakeven.guard.vllm_steps import GuardedSteps, Limits

PROMPT = (1, 2, 3, 4)
"""Repeated, it is its own continuation, and every step drafts."""
STEPS = 6


def warm_up(settings: GuardSettings, limits: Limits) -> None:
    """Serve two made-up requests that repeat themselves, on a clock of our own."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.01
        return now

    points = tuple(CurvePoint(size, 0.01, 0.01, 0.01, 1) for size in (1, 2, 64))
    small = replace(limits, max_model_len=256)
    steps = GuardedSteps(settings, small, clock, curve=Curve(points))
    ids = np.zeros((2, 256), np.int32)
    ids[:] = np.resize(np.array(PROMPT, np.int32), 256)
    counts = np.array([32, 33], np.int32)
    sampled = [[int(ids[row, counts[row] - 1])] for row in range(2)]
    for _ in range(STEPS):
        drafts = steps.step(sampled, counts, ids)
        sampled = [
            ids[row, counts[row] : counts[row] + len(draft) + 1].tolist() for row, draft in enumerate(drafts)
        ]
        counts = counts + np.array([len(given) for given in sampled], np.int32)
