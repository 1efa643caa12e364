import pytest

from breakeven.compare.window import smallest_within_noise
from breakeven.errors import UsageError
from breakeven.interval import Interval


def test_a_tie_goes_to_the_smaller_window():
    assert smallest_within_noise({4: Interval(1.27, 1.24, 1.30), 2: Interval(1.26, 1.23, 1.29)}) == 2


def test_a_clear_winner_wins():
    assert smallest_within_noise({2: Interval(1.10, 1.0, 1.3), 4: Interval(1.27, 1.24, 1.30)}) == 4


def test_nothing_measured():
    with pytest.raises(UsageError, match="name at least one"):
        smallest_within_noise({})
