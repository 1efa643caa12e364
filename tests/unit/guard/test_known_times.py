"""Step times that are known, as a policy asks for them."""

from __future__ import annotations

import pytest

from breakeven.guard.known_times import KnownTimes
from breakeven.guard.simulate.times import times_of
from tests.unit.forecast.costs import FREE, Line


def test_a_step_by_its_tokens_with_the_plain_one_up_to_the_sequences():
    known = KnownTimes([times_of(Line(0.008, 0.002), FREE, c, 3, 0.0).seconds for c in (1, 2)])
    assert known.seconds(4, 1) == pytest.approx([0.010, 0.010, 0.012, 0.014, 0.016])
    assert known.seconds(5, 2) == pytest.approx([0.012, 0.012, 0.012, 0.014, 0.016, 0.018])
    assert known.seconds(3, 2) == pytest.approx([0.012, 0.012, 0.012, 0.014])


def test_no_probe_is_due():
    assert KnownTimes([]).probe(1, 10) == 0
