"""What a head must reach, and what a known one gives."""

import pytest

from breakeven.errors import UsageError
from breakeven.forecast.needed import check_acceptance, given_rows, needed
from tests.unit.forecast.costs import FREE, Line, drafting


def test_break_even_is_the_drafted_step_in_plain_steps():
    (one,) = needed(Line(), drafting(0.001, 0.002, 0.0005), [4], [1], 0)
    step = (0.015 + 0.001 + 0.002 + 4 * 0.0005) / 0.011
    assert one.acceptance_length[1.0].estimate == pytest.approx(step)
    assert one.acceptance_length[1.5].estimate == pytest.approx(1.5 * step)


def test_a_given_head_reaches_a_speedup_where_its_length_is_the_needed_one():
    lengths = needed(Line(), FREE, [1, 2], [1, 8], 0)
    rows = given_rows([0.8, 0.5], "eagle3", "vllm", Line(), FREE, [1, 8], 0)
    assert [row.tokens_per_step for row in rows] == pytest.approx([1.8, 2.3])
    for place, one in enumerate(lengths):
        row, column = divmod(place, 2)
        must = one.acceptance_length[1.0].estimate
        assert rows[row].cells[column].speedup.estimate == pytest.approx(rows[row].tokens_per_step / must)


def test_needed_grows_with_the_batch():
    small, large = needed(Line(), FREE, [4], [1, 64], 0)
    assert large.acceptance_length[1.0].estimate > small.acceptance_length[1.0].estimate


@pytest.mark.parametrize(
    ("rates", "says"), [([1.2], "1.2 at position 1"), ([-0.1], "position 1"), ([0.4, 0.5], "rises to 0.5")]
)
def test_impossible_acceptance(rates, says):
    with pytest.raises(UsageError, match=says):
        check_acceptance(rates)
