"""What a mean step costs where sequences draft each on its own: diagnose, watch and a replay say it alike."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.cost.drafting import drafting_cost
from breakeven.cost.step import Step
from breakeven.diagnose.causes.priced import price_of
from breakeven.diagnose.causes.window import too_long
from breakeven.diagnose.evidence import Drafting, Evidence
from breakeven.diagnose.replaying import Priced
from breakeven.interval import Interval
from breakeven.watch.pays import Drafts, speedup_of
from tests.unit.forecast.costs import Line

STEPS = 20_000
OWN = drafting_cost("vllm", "ngram")


class Experts(Line):
    """The more tokens there are, the fewer experts a further one wakes."""

    def _at(self, step: Step, error: float = 0.0) -> float:
        return 0.010 + 0.030 * (1 - math.exp(-step.batch_tokens / 30))


class Full(Line):
    """Free up to 24 tokens, and a millisecond for each from there on."""

    def _at(self, step: Step, error: float = 0.0) -> float:
        return 0.015 + 0.001 * max(step.batch_tokens - 24, 0)


def simulated(cost: Line, sequences: int, share: float, drafted: int) -> float:
    """Plain steps that a mean one of STEPS took."""
    chance = random.Random(1)
    seconds = 0.0
    for _ in range(STEPS):
        drafts = [drafted if chance.random() < share else 0 for _ in range(sequences)]
        seconds += cost._at(Step(1 + sum(drafts) / sequences, sequences)) + OWN.step_s.estimate
        seconds += OWN.drafted_step_s.estimate if any(drafts) else 0.0
    return seconds / STEPS / cost._at(Step(1, sequences))


def replayed(sequences: int, share: float, drafted: int, cost: Line) -> float:
    drafts = round(1000 * share)
    rows = np.array([(0, 0, 1000 - drafts), (drafted, 0, drafts)], np.int64)
    found = Acceptance(10, 1010, 1000, rows, np.zeros((DECILES, 4), np.int64))
    per_token = Priced(cost, "vllm", "ngram", sequences, 0).per_token(found)
    assert per_token is not None and found.tokens_per_step is not None
    return per_token * found.tokens_per_step


@pytest.mark.parametrize("cost", [Line(), Experts(), Full()], ids=["line", "experts", "full"])
@pytest.mark.parametrize(
    ("sequences", "share", "drafted"), [(1, 0.3, 4), (4, 0.5, 3), (16, 0.1, 5), (16, 1.0, 2)]
)
def test_all_say_what_a_simulation_says(cost: Line, sequences: int, share: float, drafted: int) -> None:
    expected = pytest.approx(simulated(cost, sequences, share, drafted), rel=0.01)
    price = price_of(Evidence(Drafting("ngram", drafted), "vllm", cost=cost, sequences=sequences))
    assert price is not None and price.mean_step(share, drafted).estimate == expected
    drafts = Drafts(Interval(share, share, share), drafted, 1.0)
    assert speedup_of(drafts, [sequences], cost, OWN)[1].estimate == expected
    assert replayed(sequences, share, drafted, cost) == expected


def test_the_better_window_of_a_batch_is_the_simulated_one() -> None:
    """Eight sequences that draft in half of their steps: the batch has room for some of their tokens."""
    rates, share, sequences, steps = (0.7, 0.5, 0.1, 0.05, 0.02, 0.01), 0.5, 8, 2000
    drafts = round(steps * share)
    accepted = tuple(round(rate * drafts) for rate in rates)
    counters = SpecCounters(steps, drafts, drafts * len(rates), sum(accepted), accepted, "test")
    evidence = Evidence(Drafting("ngram", len(rates)), "vllm", counters=counters, cost=Full())
    found = too_long(replace(evidence, sequences=sequences))
    costs = {
        k: simulated(Full(), sequences, share, k) / (1 + share * sum(rates[:k]))
        for k in range(1, len(rates) + 1)
    }
    assert found is not None and f": {min(costs, key=costs.__getitem__)} is better" in found.title
