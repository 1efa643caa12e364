"""Batching: small loads by hand, what must cancel, and where the interval comes from."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Step
from breakeven.forecast.simulate import GROUPS, Batching, jackknife_half, loads
from breakeven.interval import Interval
from tests.unit.forecast.costs import FREE, NOTHING, Line, drafting, record

LINE = Line(a=0.010, b=0.001, kv=1e-6)
MIXED = [
    [(3, 3), (0, 0), (3, 1), (2, 0)],
    [(0, 0), (3, 2)],
    [(3, 0), (3, 0), (0, 0), (3, 3), (1, 1)],
    [(0, 0)] * 7,
    [(3, 3)] * 5,
]


def batching(steps, cost=LINE, concurrency=1, prefill_s=0.0, prompt=10, **more):
    requests, setting = record(steps, prompt=prompt)
    most = int(setting.drafted.max(initial=0))
    return Batching(requests, cost, concurrency, most, prefill_s, **more), setting


def test_two_places_three_requests_by_hand():
    """Prompts of 10 tokens; A drafts 2 and has both accepted, B and C take two plain steps each."""
    served, setting = batching([[(2, 2)], [(0, 0), (0, 0)], [(0, 0), (0, 0)]], concurrency=2, prefill_s=1e-4)
    prefill_both = 0.011 + 20e-4
    a_and_b = 0.010 + (3 + 1) * 0.001 + (10 + 10) * 1e-6
    b_and_prefill_of_c = 0.010 + 0.001 + 11 * 1e-6 + 10e-4
    c_alone = 2 * (0.010 + 0.001) + (10 + 11) * 1e-6
    spent = prefill_both + a_and_b + b_and_prefill_of_c + c_alone
    assert served.seconds(setting, FREE) == pytest.approx(spent)
    extra = 5 * 0.002 + 0.005 + 2 * 0.0005
    cost = drafting(step=0.002, drafted=0.005, token=0.0005)
    assert served.seconds(setting, cost) == pytest.approx(spent + extra)

    a_and_b_plain = 2 * (0.010 + 2 * 0.001) + (10 + 10 + 11 + 11) * 1e-6
    a_and_prefill_of_c = 0.010 + 0.001 + 12 * 1e-6 + 10e-4
    plain = prefill_both + a_and_b_plain + a_and_prefill_of_c + c_alone
    assert served.plain_s == pytest.approx(plain)
    assert served.speedup(setting, cost).estimate == pytest.approx(plain / (spent + extra))


def test_one_after_another_takes_the_sum_of_its_steps():
    served, setting = batching(MIXED, replace(LINE, kv=0.0))
    first_tokens = len(MIXED) * LINE.seconds(Step()).estimate
    spent = sum(0.010 + 0.001 * (drafted + 1) for steps in MIXED for drafted, _ in steps)
    assert served.seconds(setting, FREE) == pytest.approx(first_tokens + spent)


@pytest.mark.parametrize("concurrency", [1, 2, 3, 64])
def test_nothing_drafted_for_nothing_is_exactly_as_fast(concurrency: int):
    served, setting = batching([[(0, 0)] * n for n in (3, 8, 1, 5)], Line(error=0.4), concurrency, 1e-5)
    assert served.speedup(setting, FREE) == Interval(1.0, 1.0, 1.0)


def test_drafts_that_are_never_accepted_slow_down():
    served, setting = batching([[(3, 0)] * 5] * 9, concurrency=4)
    assert served.speedup(setting, FREE).high < 1


def test_a_long_prompt_is_cut_by_the_budget():
    """10 prompt tokens in steps of 4 take three steps before the only decode step."""
    served, _ = batching([[(0, 0)]], replace(LINE, kv=0.0), token_budget=4)
    assert served.plain_s == pytest.approx(4 * 0.011)


def test_decode_steps_come_before_prompt_tokens():
    """Of a budget of 4, A's prompt of 10 leaves B 2 tokens in its third step; then A decodes with 1 of it,
    and the other 8 of B take 3 + 3 + 2; in the last step both decode."""
    served, setting = batching([[(0, 0)] * 4, [(0, 0)]], replace(LINE, kv=0.0), 2, 1e-4, token_budget=4)
    assert served.seconds(setting, FREE) == pytest.approx((3 + 3) * 0.011 + 0.012 + 20e-4)


def test_an_output_of_the_first_token_alone_leaves_at_once():
    served, setting = batching([[], [(1, 1)]], replace(LINE, kv=0.0), concurrency=1)
    assert served.seconds(setting, FREE) == pytest.approx(2 * 0.011 + 0.012)


def test_stragglers_show():
    """A long request alone at the end gains what one sequence gains, however many began."""
    steps = [[(3, 3)] * 100, *[[(0, 0)]] * 15]
    together, setting = batching(steps, concurrency=16)
    alone, own = batching(steps[:1], concurrency=16)
    assert together.speedup(setting, FREE).estimate == pytest.approx(
        alone.speedup(own, FREE).estimate, rel=0.02
    )


def test_one_request_has_the_error_of_the_cost_alone():
    exact, setting = batching([[(3, 1)] * 9])
    found = exact.speedup(setting, FREE)
    assert found.low == found.estimate == found.high
    rough, setting = batching([[(3, 1)] * 9], replace(LINE, error=0.3, kv=0.0))
    found = rough.speedup(setting, FREE)
    first = 0.011
    at = [
        (first + 18 * 0.011) / (first + 9 * 0.011 * (0.010 + 0.004 * e) / (0.010 + 0.001 * e))
        for e in (1.3, 1, 0.7)
    ]
    assert (found.low, found.estimate, found.high) == pytest.approx(tuple(at))


def test_drafting_adds_its_error():
    served, setting = batching([[(3, 1)] * 9])
    cost = DraftingCost(NOTHING, Interval(0.002, 0.001, 0.004), NOTHING, "given")
    found = served.speedup(setting, cost)
    low, high = (served.seconds(setting, drafting(drafted=s)) for s in (0.004, 0.001))
    assert found.low == pytest.approx(served.plain_s / low)
    assert found.high == pytest.approx(served.plain_s / high)


@dataclass(frozen=True)
class Blurred(Line):
    """Its seconds are hardly known, its ratios are."""

    def seconds(self, step: Step) -> Interval:
        exact = super().seconds(step).estimate
        return Interval(exact, exact / 3, exact * 3)


def test_an_error_that_both_sides_share_cancels():
    served, setting = batching([[(3, 1)] * 9], Blurred())
    found = served.speedup(setting, FREE)
    assert found.low == found.estimate == found.high


def test_equal_requests_have_no_sampling_error_one_after_another():
    served, setting = batching([[(3, 1)] * 9] * 16)
    found = served.speedup(setting, FREE)
    assert found.high / found.low == pytest.approx(1)


def test_unequal_requests_have_one():
    served, setting = batching([[(3, 3)] * 9, [(3, 0)] * 36] * 8)
    found = served.speedup(setting, FREE)
    assert found.low < 0.9 * found.estimate < found.estimate < 0.9 * found.high


def test_loads_leave_out_interleaved_groups():
    every, *without = loads(20)
    assert every.tolist() == list(range(20))
    assert len(without) == GROUPS
    assert without[3].tolist() == [r for r in range(20) if r not in (3, 11, 19)]
    assert [load.tolist() for load in loads(3)] == [[0, 1, 2], [1, 2], [0, 2], [0, 1]]
    assert [load.tolist() for load in loads(1)] == [[0]]


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    without = (values.sum() - values) / 4
    error = values.std(ddof=1) / np.sqrt(5)
    assert jackknife_half(without) == pytest.approx(2.7764451 * error)
    assert jackknife_half(without[:0]) == 0


def test_threads_share_it():
    served, setting = batching(MIXED * 20, concurrency=8, prefill_s=1e-5)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: served.speedup(setting, FREE), range(40)))
    assert found == {served.speedup(setting, FREE)}
