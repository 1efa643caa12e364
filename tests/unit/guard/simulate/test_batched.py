"""The guard through its policy: one request at a time it is the guard of the compiled loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.batched import serve
from breakeven.guard.simulate.guarded import guarded_steps
from breakeven.guard.simulate.times import Times, times_of
from tests.unit.forecast.costs import Line, drafting
from tests.unit.guard.simulate.texts import looked

COSTS = {"cheap": Line(0.0095, 0.0005), "middling": Line(0.008, 0.002), "dear": Line(0.004, 0.006)}


def of(cost: Line, sequences: int, drafted_s: float = 0.0) -> list[Times]:
    return [
        times_of(cost, drafting(drafted=drafted_s), c, GuardSettings().most_tokens, 0.0)
        for c in range(1, sequences + 1)
    ]


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("drafted_s", [0.0, 0.002])
def test_one_at_a_time_is_the_compiled_loop(name: str, drafted_s: float, tmp_path: Path):
    found, times = looked(tmp_path), of(COSTS[name], 1, drafted_s)
    steps = guarded_steps(found, times[0], GuardSettings())
    together = serve(found, times, GuardSettings())
    request = np.repeat(np.arange(len(steps.counts)), steps.counts)
    spent = np.bincount(request, times[0].whole[steps.drafted], len(steps.counts))
    assert together.spent == pytest.approx(spent)
    assert together.counters.steps == len(steps.drafted)
    assert together.counters.drafted_tokens == int(steps.drafted.sum())
    assert together.counters.accepted_tokens == int(steps.accepted.sum())


def test_a_busy_batch_drafts_less(tmp_path: Path):
    """Each token costs as much whatever the batch, but a plain step of the batch is longer."""
    steep = Line(0.002, 0.004)
    drafted = [
        serve(looked(tmp_path), of(steep, c), GuardSettings()).counters.drafted_tokens or 0 for c in (1, 8)
    ]
    assert drafted[1] <= drafted[0]
