import pytest

from breakeven.guard.simulate.times import times_of
from tests.unit.forecast.costs import Line, drafting


def test_a_step_in_plain_steps():
    times = times_of(Line(0.008, 0.002), drafting(step=0.001, drafted=0.005), 1, 3, 0.0)
    assert times.plain_s == pytest.approx(0.010)
    assert times.drafted == pytest.approx([1.0, 1.7, 1.9, 2.1])
    assert times.idle == pytest.approx(0.1)
    assert times.whole == pytest.approx([1.1, 1.8, 2.0, 2.2])
    assert times.seconds == pytest.approx([0.010, 0.010, 0.017, 0.019, 0.021])


def test_of_several_sequences_by_the_draft_tokens_of_all():
    times = times_of(Line(0.008, 0.002), drafting(), 2, 2, 0.0)
    assert times.drafted == pytest.approx([1, 14 / 12, 16 / 12, 18 / 12, 20 / 12])
