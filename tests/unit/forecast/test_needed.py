"""What a head must reach, and what a known one gives."""

import pytest

from breakeven.errors import UsageError
from breakeven.forecast.bootstrap import resampler
from breakeven.forecast.cells import Candidate, Decoding
from breakeven.forecast.decode import idle_step, mix_of, relative_cost, step_costs
from breakeven.forecast.needed import check_acceptance, given_rows, needed
from tests.unit.forecast.costs import FREE, Line, drafting, record


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


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_a_given_head_is_what_a_record_that_drafts_at_every_step_comes_to(concurrency):
    extra = drafting(0.001, 0.002, 0.0005)
    requests, setting = record([[(2, 2), (2, 1), (2, 0), (2, 0)]])
    relative = relative_cost(Line(), concurrency, 2, requests.context_tokens)
    mix = mix_of(setting, 2)
    candidate = Candidate(mix, step_costs(relative, extra, mix.share), idle_step(relative, extra))
    (replayed,) = Decoding(requests, resampler(requests.category)).cells([candidate], concurrency)
    *_, row = given_rows([0.5, 0.25], "eagle3", "vllm", Line(), extra, [concurrency], 0)
    assert row.cells[0].speedup.estimate == pytest.approx(replayed.speedup.estimate)
    assert row.cells[0].step_ratio.estimate == pytest.approx(replayed.step_ratio.estimate)


def test_needed_grows_with_the_batch():
    small, large = needed(Line(), FREE, [4], [1, 64], 0)
    assert large.acceptance_length[1.0].estimate > small.acceptance_length[1.0].estimate


@pytest.mark.parametrize(
    ("rates", "says"), [([1.2], "1.2 at position 1"), ([-0.1], "position 1"), ([0.4, 0.5], "rises to 0.5")]
)
def test_impossible_acceptance(rates, says):
    with pytest.raises(UsageError, match=says):
        check_acceptance(rates)
