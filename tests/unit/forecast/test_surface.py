"""Surface: what the tables say against what the cost says."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from breakeven.cost.step import Step
from breakeven.forecast.surface import Surface, tabulate
from breakeven.interval import Interval
from tests.unit.forecast.costs import Line

LINE = Line(a=0.007, b=2e-5, kv=4e-8)


@dataclass(frozen=True)
class Stairs(Line):
    """Jumps wherever a step holds one more block of 8 tokens; its asks are counted."""

    asked: list[Step] = field(default_factory=list)

    def seconds(self, step: Step) -> Interval:
        self.asked.append(step)
        return super().seconds(step)

    def relative(self, step: Step, base: Step) -> Interval:
        self.asked.append(step)
        return super().relative(step, base)

    def _at(self, step: Step, error: float = 0.0) -> float:
        return super()._at(step, error) + 1e-3 * (step.batch_tokens // 8)


def seconds(surface: Surface, sequences: int, tokens: int, cached: float) -> float:
    at = sequences, tokens - 1
    return float(surface.empty_s[at] + cached * surface.cached_s[at])


@pytest.mark.parametrize("context", [0.0, 300.0])
def test_a_linear_cost_is_met_everywhere(context: float):
    surface = tabulate(LINE, 70, 17, context).estimate
    assert surface.empty_s.shape == surface.cached_s.shape == (71, 17)
    for sequences in range(1, 71):
        for tokens in range(1, 18):
            exact = LINE.seconds(Step(tokens, sequences, 500)).estimate
            assert seconds(surface, sequences, tokens, 500 * sequences) == pytest.approx(exact, rel=1e-12)


def test_a_crooked_cost_is_met_where_it_is_asked():
    cost = Stairs()
    surface = tabulate(cost, 100, 12, 0).estimate
    for sequences in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 100):
        for tokens in (*range(1, 10), 12):
            exact = cost.seconds(Step(tokens, sequences)).estimate
            assert seconds(surface, sequences, tokens, 0) == pytest.approx(exact, rel=1e-12)
    between = [seconds(surface, sequences, 1, 0) for sequences in (64, 80, 96)]
    assert between[1] == pytest.approx((between[0] + between[2]) / 2)


def test_the_largest_surface_asks_a_few_hundred_times():
    cost = Stairs()
    tabulate(cost, 256, 17, 500)
    assert 100 < len(cost.asked) < 400


def test_one_token_has_a_second_column_to_lie_between():
    assert tabulate(LINE, 1, 1, 0).estimate.empty_s.shape == (2, 2)


def test_ends_are_those_of_the_ratio_to_the_plain_steps_of_as_many():
    cost = Line(error=0.5)
    found = tabulate(cost, 16, 4, 0)
    for sequences in (1, 4, 16):
        ratio = cost.relative(Step(4, sequences), Step(1, sequences))
        plain = cost.seconds(Step(1, sequences)).estimate
        assert seconds(found.low, sequences, 4, 0) == pytest.approx(plain * ratio.low)
        assert seconds(found.high, sequences, 4, 0) == pytest.approx(plain * ratio.high)


def test_plain_steps_are_the_same_in_all_three():
    found = tabulate(Line(error=0.5, kv=1e-7), 30, 4, 200)
    for other in (found.low, found.high):
        assert np.array_equal(other.empty_s[:, 0], found.estimate.empty_s[:, 0])
        assert np.array_equal(other.cached_s[:, 0], found.estimate.cached_s[:, 0])
