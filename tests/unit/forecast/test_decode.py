"""The mean field: a step of one sequence among others that draft as they come."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.step import Step
from breakeven.forecast.decode import mean_step, mix_of, relative_cost, step_costs, summed
from breakeven.interval import Interval
from tests.unit.forecast.costs import FREE, Line, drafting, record

SHARE = np.array([0.5, 0.2, 0.0, 0.3])


def brute(cost, share, sequences, context, extra):
    """By every draw of the others."""
    base_s = cost.seconds(Step(1, sequences, context)).estimate
    found = []
    for own in range(len(share)):
        mean = 0.0
        for others in itertools.product(range(len(share)), repeat=sequences - 1):
            probability = float(np.prod([share[d] for d in others]))
            drafts = [own, *others]
            tokens = (sequences + sum(drafts)) / sequences
            step_s = cost.seconds(Step(tokens, sequences, context)).estimate
            step_s += extra.step_s.estimate + extra.token_s.estimate * max(drafts)
            step_s += extra.drafted_step_s.estimate if max(drafts) else 0.0
            mean += probability * step_s
        found.append(mean / base_s)
    return found


@pytest.mark.parametrize("sequences", [1, 2, 3, 5])
@pytest.mark.parametrize("extra", [drafting(), drafting(0.001, 0.002, 0.0005)])
def test_equals_the_mean_over_every_draw(sequences, extra):
    relative = relative_cost(Line(), sequences, 3, 100)
    assert step_costs(relative, extra, SHARE)[0] == pytest.approx(brute(Line(), SHARE, sequences, 100, extra))


def simulated(cost, extra, draft_share, drafted, sequences):
    """By every way in which the sequences of a step can draft, each on its own."""
    fewer = int(drafted)
    of_draft = {fewer: fewer + 1 - drafted, fewer + 1: drafted - fewer}
    chances = {0: 1 - draft_share}
    for d, chance in of_draft.items():
        chances[d] = chances.get(d, 0.0) + draft_share * chance
    mean_s = 0.0
    for way in itertools.product(chances, repeat=sequences):
        step_s = cost.seconds(Step(1 + sum(way) / sequences, sequences)).estimate + extra.step_s.estimate
        step_s += extra.drafted_step_s.estimate * (max(way) > 0) + extra.token_s.estimate * max(way)
        mean_s += float(np.prod([chances[d] for d in way])) * step_s
    return mean_s / cost.seconds(Step(1, sequences)).estimate


@pytest.mark.parametrize("sequences", [1, 2, 4])
@pytest.mark.parametrize(
    ("draft_share", "drafted"), [(0.0, 3.0), (0.1, 3.0), (0.6, 2.3), (1.0, 1.0), (1.0, 3.0)]
)
def test_a_mean_step_is_the_mean_over_all_ways_to_draft(sequences, draft_share, drafted):
    class Curved(Line):
        def _at(self, step, error=0.0):
            return 0.010 + 1e-4 * step.batch_tokens**1.5

        def seconds(self, step):
            return Interval(*[self._at(step)] * 3)

    extra = drafting(0.001, 0.002, 0.0005)
    found = mean_step(relative_cost(Curved(), sequences, 3, 0.0), extra, draft_share, drafted)
    expected = simulated(Curved(), extra, draft_share, drafted, sequences)
    assert found.estimate == pytest.approx(expected, rel=2e-3)
    assert found.low == found.high == pytest.approx(found.estimate)


def test_ends_of_a_mean_step_are_the_costs_own():
    found = mean_step(relative_cost(Line(error=0.5), 2, 3, 0), FREE, 0.5, 3.0)
    assert found.low < found.estimate < found.high


def test_a_bent_cost_is_met_at_whole_means():
    class Bent(Line):
        def _at(self, step, error=0.0):
            return 0.01 if step.tokens <= 3 else 0.01 * step.tokens

    costs = step_costs(relative_cost(Bent(), 1, 8, 0), FREE, np.full(9, 1 / 9))
    assert costs[0] == pytest.approx([1, 1, 1, 4, 5, 6, 7, 8, 9])


def test_ends_are_the_costs_own():
    estimate, low, high = step_costs(relative_cost(Line(error=0.5), 1, 3, 0), FREE, SHARE)
    assert estimate[0] == low[0] == high[0] == pytest.approx(1)
    assert (low[1:] < estimate[1:]).all() and (estimate[1:] < high[1:]).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(sum), st.integers(0, 40))
def test_a_sum_of_draws_is_a_distribution_with_their_mean(weights, draws):
    share = np.array(weights) / sum(weights)
    found = summed(share, draws)
    assert len(found) == draws * (len(share) - 1) + 1
    assert (found >= 0).all() and found.sum() == pytest.approx(1)
    mean = share @ np.arange(len(share))
    assert found @ np.arange(len(found)) == pytest.approx(draws * mean, abs=1e-6)


def test_256_sequences_are_near_the_mean():
    relative = relative_cost(Line(), 256, 3, 0)
    mean = SHARE @ np.arange(4)
    tokens = 256 + 255 * mean
    plain_s = 0.010 + 0.256
    expected = [(0.010 + 0.001 * (tokens + d)) / plain_s for d in range(4)]
    assert step_costs(relative, FREE, SHARE)[0] == pytest.approx(expected)


def test_the_mix_counts_steps_by_request_and_drafted_tokens():
    _, steps = record([[(2, 1), (0, 0), (2, 2)], [(1, 0)]])
    mix = mix_of(steps, 2)
    assert mix.counts.tolist() == [[1, 0, 2], [0, 1, 0]]
    assert mix.share.tolist() == [0.25, 0.25, 0.5]
