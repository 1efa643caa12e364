"""Cells: speedups by hand, their intervals, and break-even."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.forecast.bootstrap import resampler
from breakeven.forecast.cells import Candidate, Decoding
from breakeven.forecast.decode import idle_step, mix_of, relative_cost, step_costs
from tests.unit.forecast.costs import FREE, Line, drafting, record

GOOD = [(3, 3), (3, 2), (0, 0), (3, 3)]
BAD = [(3, 0), (3, 0), (0, 0), (3, 0)]


def cell(steps, categories=(), cost=None, extra=FREE, concurrency=1):
    requests, setting = record(steps, categories)
    most = int(setting.drafted.max(initial=0))
    relative = relative_cost(cost or Line(), concurrency, most, requests.context_tokens)
    decoding = Decoding(requests, resampler(requests.category))
    mix = mix_of(setting, most)
    candidate = Candidate(mix, step_costs(relative, extra, mix.share), idle_step(relative, extra))
    (found,) = decoding.cells([candidate], concurrency)
    return found


def test_one_sequence_by_hand():
    found = cell([GOOD])
    spent = (3 * 0.014 + 0.011) / 0.011
    assert found.speedup.estimate == pytest.approx(12 / spent)
    assert found.step_ratio.estimate == pytest.approx(spent / 4)
    assert found.break_even.tokens_per_step == pytest.approx(spent / 4)


def test_categories_and_their_geometric_mean():
    found = cell([GOOD, BAD, BAD], ["code", "math", "math"])
    code, math = (found.by_category[name].estimate for name in ("code", "math"))
    assert code > 1 > math
    assert found.speedup.estimate == pytest.approx((code * math * math) ** (1 / 3))


def test_nothing_drafted_is_as_fast_to_the_last_bit_but_for_what_drafting_costs():
    idle = [[(0, 0)] * 5] * 3
    found = cell(idle)
    assert (found.speedup.low, found.speedup.estimate, found.speedup.high) == (1, 1, 1)
    assert found.break_even.acceptance_rate is None and found.break_even.draft_share is None
    slower = cell(idle, extra=drafting(step=0.0011))
    assert slower.speedup.estimate == pytest.approx(1 / 1.1) and slower.outcome == "slower"


def test_at_break_even_acceptance_the_token_takes_as_long():
    """A window of 4 on every step of one sequence costs 15 / 11: (15/11 − 1) / 4 of it must be accepted."""
    found = cell([[(4, 1)] * 44])
    assert found.break_even.acceptance_rate == pytest.approx((15 / 11 - 1) / 4)
    accepted = round(found.break_even.acceptance_rate * 4 * 44)
    even = cell([[(4, 1)] * accepted + [(4, 0)] * (44 - accepted)])
    assert even.speedup.estimate == pytest.approx(1)


def test_the_draft_share_that_would_pay():
    """Each undrafted step costs 1 ms more; each drafted one gains 2 tokens for 2 ms over its 11 ms."""
    extra = drafting(step=0.001)
    found = cell([[(2, 2)] * 2 + [(0, 0)] * 8], extra=extra)
    share = found.break_even.draft_share
    assert share == pytest.approx((1 / 11) / (2 - 2 / 11))
    assert cell([BAD], extra=extra).break_even.draft_share is None


def test_no_draft_share_pays_where_all_sequences_lose_by_drafting():
    """Eight sequences on a line of 1 ms a token: a draft of 4 costs all of them 32 ms on 18 and gains 1."""
    extra = drafting(step=0.001)
    losing = [[(4, 1)] * 2 + [(0, 0)] * 8]
    assert cell(losing, extra=extra).break_even.draft_share is not None
    assert cell(losing, extra=extra, concurrency=8).break_even.draft_share is None


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_at_the_draft_share_that_would_pay_a_token_takes_as_long(concurrency):
    """Of several sequences all draft at it."""
    extra = drafting(step=0.0011 * concurrency)
    found = cell([[(1, 1)] * 30 + [(0, 0)] * 30], extra=extra, concurrency=concurrency, cost=Line(b=0.0005))
    share = found.break_even.draft_share
    drafts = round(share * 3000)
    even = cell(
        [[(1, 1)] * drafts + [(0, 0)] * (3000 - drafts)],
        extra=extra,
        concurrency=concurrency,
        cost=Line(b=0.0005),
    )
    assert even.speedup.estimate == pytest.approx(1, abs=1e-3)


def test_more_requests_and_a_surer_cost_make_the_interval_narrower():
    def width(found):
        return found.speedup.high - found.speedup.low

    few, many = cell([GOOD, BAD] * 4), cell([GOOD, BAD] * 64)
    assert width(many) < width(few)
    unsure = cell([GOOD, BAD] * 64, cost=Line(error=0.5))
    assert width(many) < width(unsure)
    assert unsure.speedup.estimate == pytest.approx(many.speedup.estimate)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Requests whose mean log speedup is known, drawn anew 200 times."""
    rng = np.random.default_rng(7)
    kinds = [GOOD, BAD]
    truth = np.exp(np.mean([np.log(cell([kind]).speedup.estimate) for kind in kinds]))
    hits = 0
    for _ in range(200):
        found = cell([kinds[i] for i in rng.integers(0, 2, 60)]).speedup
        hits += found.low <= truth <= found.high
    assert 0.88 <= hits / 200 <= 0.99


@pytest.mark.parametrize(("requests", "concurrency"), [(4, 1), (4, 16), (8, 16), (40, 16)])
def test_intervals_hold_the_truth_also_of_few_requests_in_a_batch(requests, concurrency):
    """Requests that accept from nearly none to nearly all. The others in the batch are a sample too."""
    rng = np.random.default_rng(11)
    accepted = rng.beta(2, 2, 400)
    pool = [[(4, round(4 * rate))] * 6 + [(0, 0)] * int(rng.integers(1, 20)) for rate in accepted]
    truth = cell(pool, concurrency=concurrency).speedup.estimate
    hits = 0
    for _ in range(150):
        found = cell([pool[i] for i in rng.integers(0, 400, requests)], concurrency=concurrency).speedup
        hits += found.low <= truth <= found.high
    assert 0.88 <= hits / 150 <= 0.995


def test_one_request_in_each_category_still_shows_how_requests_differ():
    found = cell([GOOD, BAD, GOOD, BAD], ["a", "b", "c", "d"]).speedup
    assert found.low < 1 < found.high
    assert found == cell([GOOD, BAD, GOOD, BAD]).speedup


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda p: (max(p), min(p))), min_size=1),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1, 2, 7, 64]),
)
def test_the_estimate_lies_in_its_interval(steps, concurrency):
    found = cell(steps, cost=Line(error=0.3), concurrency=concurrency)
    for one in (found.speedup, *found.by_category.values(), found.step_ratio):
        assert 0 < one.low <= one.estimate * (1 + 1e-9) and one.estimate <= one.high * (1 + 1e-9)
