"""Whether there is enough to learn from: what heads reached that were trained on as much."""

from __future__ import annotations

from breakeven.eagle.plan.assumed import SAMPLES
from breakeven.eagle.plan.runs import TrainingRun, training_runs, with_as_few
from breakeven.units import between, count


def too_few(samples: int) -> str | None:
    """What to expect of so many training samples; None where general heads are trained on no more."""
    if samples >= SAMPLES.value.low:
        return None
    return (
        f"{count(samples, 'training sample')} {'is' if samples == 1 else 'are'} few: {_expect(samples)}; "
        f"general heads are trained on {SAMPLES.value.low:,.0f} to {SAMPLES.value.high:,.0f}. Traffic that "
        "is much alike needs fewer, and  breakeven eagle evaluate  tells"
    )


def _expect(samples: int) -> str:
    run = with_as_few(samples)
    if run is not None:
        return _reached(run)
    known = [one for one in training_runs() if one.samples is not None and one.acceptance_low is not None]
    least = min(known, key=lambda one: (one.samples or 0, one.acceptance_low or 0.0))
    return f"none is published of fewer than {least.samples:,}, and {_reached(least)}"


def _reached(run: TrainingRun) -> str:
    low = run.acceptance_low or 0.0
    lengths = between(low, run.acceptance_high or low)
    window = "" if run.k is None else f" at {run.k} drafted tokens"
    return (
        f"with {run.samples or 0:,} a head for {run.model} reached an acceptance length of {lengths}{window} "
        f"({run.source})"
    )
