"""The learning rate by step: a linear rise, then a linear fall to zero (as EAGLE's own training has it)."""

from __future__ import annotations


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """Of the step after `step` that are done, of `steps`; `warmup` is the share of them that it rises for.

    The first step already learns, and so does the last.
    """
    rising = round(warmup * steps)
    if step < rising:
        return peak * (step + 1) / rising
    return peak * (steps - step) / (steps - rising)
