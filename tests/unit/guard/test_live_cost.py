"""Step times learned from a server: what is known, when it is not, and how fast what changed is found out."""

from __future__ import annotations

import math
import pickle
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from breakeven.guard.live_cost import LiveCost
from breakeven.guard.probes import FIRST_REST
from breakeven.guard.told_sizes import CHANGED
from breakeven.guard.told_steps import MOST_TOKENS
from breakeven.guard.tracked import LEAST
from tests.unit.guard.driving import Driver, Server, curve, gentle, graphs, ratio, steep


def test_from_nothing_it_is_known_when_the_plain_step_was_told_often_enough():
    cost = LiveCost()
    for _ in range(LEAST):
        assert cost.seconds(8) is None
        cost.tell(1, 1, 0.010)
    seconds = cost.seconds(8)
    assert seconds is not None and seconds.shape == (9,)
    assert seconds[0] == seconds[1] == pytest.approx(0.010)


def test_from_nothing_an_untried_size_is_bounded_by_as_many_plain_steps():
    cost = LiveCost()
    Server(noise=0.0).told(cost, 1, times=LEAST)
    assert [ratio(cost, n) for n in (2, 5, 11)] == pytest.approx([2, 5, 11])


def test_from_nothing_a_tried_size_bounds_those_above_by_their_tokens_and_those_below_by_itself():
    cost, server = LiveCost(), Server(noise=0.0)
    server.told(cost, 1, times=LEAST)
    server.told(cost, 5)
    assert ratio(cost, 5) == pytest.approx(1.4)
    assert [ratio(cost, n) for n in (2, 3, 4)] == pytest.approx([1.4, 1.4, 1.4])
    assert ratio(cost, 10) == pytest.approx(2.8)


def test_from_nothing_another_batch_is_known_from_its_own_steps_or_from_those_around_it():
    cost, server = LiveCost(), Server(noise=0.0)
    server.told(cost, 2, sequences=2, times=LEAST)
    server.told(cost, 6, sequences=6, times=LEAST - 1)
    assert cost.seconds(8, 4) is None and cost.seconds(8, 6) is None
    server.told(cost, 6, sequences=6)
    for sequences in (2, 6):
        seconds = cost.seconds(8, sequences)
        assert seconds is not None and seconds[sequences] == pytest.approx(gentle(sequences))
    between = cost.seconds(8, 4)
    assert between is not None and gentle(2) < between[4] < gentle(6)
    assert cost.seconds(8, 1) is None and cost.seconds(8, 7) is None


def test_asked_without_a_batch_it_answers_for_the_last_one_told():
    cost, server = LiveCost(curve(gentle)), Server(noise=0.0)
    server.told(cost, 4, sequences=4, times=LEAST)
    asked, last = cost.seconds(8, 4), cost.seconds(8)
    assert asked is not None and last is not None and np.array_equal(asked, last)


def test_a_curve_is_known_at_once_and_bounded_by_its_error():
    measured = curve(gentle)
    seconds = LiveCost(measured).seconds(20, 1)
    assert seconds is not None
    assert seconds[1] == pytest.approx(gentle(1))
    for tokens in range(2, 21):
        step_s, _, high_s = measured.step_seconds(tokens)
        assert step_s < seconds[tokens] <= high_s * (1 + 1e-9)


def test_beyond_the_last_measured_point_a_batch_must_be_told():
    cost, server = LiveCost(curve(gentle)), Server(noise=0.0)
    assert cost.seconds(40, 16) is not None and cost.seconds(40, 20) is None
    server.told(cost, 20, sequences=20, times=LEAST)
    assert cost.seconds(40, 20) is not None


def test_a_calibration_of_another_server_keeps_its_ratios_and_says_so():
    cost, server = LiveCost(curve(gentle)), Server(factor=2.5, noise=0.0)
    before = [ratio(cost, n) for n in (2, 5, 11)]
    assert cost.notes() == {}
    server.told(cost, 1, times=10)
    assert [ratio(cost, n) for n in (2, 5, 11)] == pytest.approx(before, rel=0.03)
    seconds = cost.seconds(11)
    assert seconds is not None and seconds[1] == pytest.approx(0.025, rel=0.06)
    (said,) = cost.notes().values()
    assert "take 2.50 times" in said and "of another server" in said


def test_a_calibration_that_is_too_dear_is_learned_from_drafted_steps():
    """As that of a mixture of experts is: neighbouring tokens share experts."""
    cost = LiveCost(curve(lambda n: gentle(n) * (1.2 if n > 4 else 1.0)))
    server = Server()
    server.told(cost, 1, 6, 1, 9, 1, 11, times=60)
    assert [ratio(cost, n) for n in (6, 9, 11)] == pytest.approx([1.5, 1.8, 2.0], rel=0.03)


def test_steps_padded_to_graphs_are_learned_each_for_itself():
    cost, server = LiveCost(), Server(times=graphs)
    server.told(cost, 1, 2, 3, 1, 4, 5, 1, 8, 9, 1, 12, times=40)
    for tokens in (2, 3, 4, 5, 8, 9, 12):
        assert ratio(cost, tokens) == pytest.approx(graphs(tokens) / graphs(1), rel=0.03)
    assert ratio(cost, 6) == pytest.approx(ratio(cost, 8), rel=0.05)


def test_batches_that_come_and_go_are_learned_each_for_itself():
    cost, server, random = LiveCost(), Server(times=graphs), Random(3)
    for _ in range(600):
        sequences = random.choice((1, 2, 3, 5))
        drafts = random.choice((0, 0, 3, 4))
        cost.tell(sequences + drafts, sequences, server.takes(sequences + drafts, sequences))
    for sequences in (1, 2, 3, 5):
        for drafts in (3, 4):
            true = graphs(sequences + drafts) / graphs(sequences)
            assert ratio(cost, sequences + drafts, sequences) == pytest.approx(true, rel=0.05)


@pytest.mark.parametrize("measured", [False, True])
def test_stalls_one_step_in_fifty_are_not_believed(measured: bool):
    cost = LiveCost(curve(gentle)) if measured else LiveCost()
    server = Server(stall_every=50)
    server.told(cost, 1, 1, 3, 1, 6, times=40)
    for _ in range(100):
        server.told(cost, 1, 1, 3, 1, 6)
        seconds = cost.seconds(6)
        if seconds is not None:
            assert seconds[1] == pytest.approx(gentle(1), rel=0.08)
            assert ratio(cost, 3) == pytest.approx(1.2, rel=0.06)
            assert ratio(cost, 6) == pytest.approx(1.5, rel=0.06)


def test_what_is_no_decode_step_changes_nothing_and_is_counted():
    cost, server = LiveCost(curve(gentle)), Server()
    server.told(cost, 1, 4, times=20)
    before = cost.seconds(8)
    assert before is not None
    cost.tell(900, 3, 0.5, prefill=True)
    cost.tell(1, 1, 0.3, prefill=True)
    for seconds in (0.0, -0.01, math.nan, math.inf):
        cost.tell(1, 1, seconds)
    cost.tell(1, 2, 0.01)
    cost.tell(0, 0, 0.01)
    cost.tell(MOST_TOKENS + 1, 1, 0.01)
    after = cost.seconds(8)
    assert after is not None and np.array_equal(after, before)
    told = cost.told
    assert (told.plain, told.drafted) == (20, 20)
    assert (told.prefill, told.bad_clock, told.malformed, told.too_large) == (2, 4, 2, 1)


def test_a_step_of_more_tokens_than_are_learned_is_not_known():
    cost = LiveCost(curve(gentle))
    assert cost.seconds(MOST_TOKENS, 1) is not None
    assert cost.seconds(MOST_TOKENS + 1, 1) is None
    assert cost.seconds(600, 600) is None and cost.seconds(4, 0) is None


@pytest.mark.parametrize("factor", [2.0, 0.5, 5.0])
def test_a_jump_of_all_steps_keeps_their_ratios(factor: float):
    """Another tenant comes, and goes again; the steps of this server are mixed."""
    cost, server = LiveCost(curve(gentle)), Server()
    mixed = (1, 4, 4, 1, 7)
    server.told(cost, *mixed, times=20)
    for now in (factor, 1.0):
        server.factor = now
        server.told(cost, *mixed, times=6)
        seconds = cost.seconds(7)
        assert seconds is not None and seconds[1] == pytest.approx(0.010 * now, rel=0.08)
        assert [ratio(cost, n) for n in (4, 7)] == pytest.approx([1.3, 1.6], rel=0.08)


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_jump_while_every_step_drafts_is_in_doubt_until_plain_steps_tell(factor: float):
    cost, server = LiveCost(curve(gentle)), Server()
    server.told(cost, 1, times=5)
    server.told(cost, 4, 6, times=20)
    server.factor = factor
    server.told(cost, 4, 6, times=3)
    assert cost.in_doubt and cost.seconds(8) is None and cost.probe(1, 8) == 0
    server.told(cost, 1, times=LEAST)
    assert not cost.in_doubt
    assert [ratio(cost, n) for n in (4, 6)] == pytest.approx([1.3, 1.5], rel=0.08)


def test_a_slowdown_of_drafts_is_believed_of_sizes_that_did_not_show_it():
    cost, server = LiveCost(curve(gentle)), Server()
    server.told(cost, 1, 3, 1, 5, 1, 9, times=20)
    server.drafted_factor = 3.0
    server.told(cost, 1, 5, times=3)
    server.told(cost, 1, times=LEAST)
    assert [ratio(cost, n) for n in (3, 5, 9)] == pytest.approx([3.6, 4.2, 5.4], rel=0.08)
    assert "steps with drafts take" in cost.notes()["steps with drafts"]


def test_one_size_that_became_slow_is_learned_for_itself():
    """As where its graph was given up."""
    cost, server = LiveCost(curve(gentle)), Server()
    server.told(cost, 1, 3, 1, 4, 1, 9, 1, 5, times=20)
    server.times = lambda n: gentle(n) * (2.0 if n == 9 else 1.0)
    server.told(cost, 1, 3, 1, 4, 1, 9, 1, 5, times=8)
    assert [ratio(cost, n) for n in (3, 4, 5)] == pytest.approx([1.2, 1.3, 1.4], rel=0.05)
    assert ratio(cost, 9) == pytest.approx(3.6, rel=0.08)


@pytest.mark.parametrize("measured", [False, True])
def test_a_planted_slowdown_turns_a_policy_off_within_fifty_steps_and_its_end_turns_it_on(measured: bool):
    server = Server(stall_every=50)
    driver = Driver(LiveCost(curve(gentle)) if measured else LiveCost(), server)
    driver.run(1500)
    assert sum(k > 0 for k in driver.run(100)) > 80
    server.drafted_factor = 3.0
    driver.run(50)
    assert sum(k > 0 for k in driver.run(400)) <= 12
    server.drafted_factor = 1.0
    driver.run(1500)
    assert sum(k > 0 for k in driver.run(100)) > 80


def test_from_nothing_probes_find_out_that_drafts_pay():
    driver = Driver(LiveCost(), Server())
    driver.run(2000)
    assert 1 <= driver.probes <= 60
    assert sum(driver.run(100)) > 300
    assert [ratio(driver.cost, n) for n in (2, 5)] == pytest.approx([1.1, 1.4], rel=0.08)


@pytest.mark.parametrize("measured", [False, True])
def test_probes_of_a_server_whose_drafts_never_pay_cost_less_than_the_ledger_allows(measured: bool):
    driver = Driver(LiveCost(curve(steep)) if measured else LiveCost(), Server(times=steep), accept=0.5)
    drafted = driver.run(10_000)
    assert sum(k > 0 for k in drafted) == driver.probes
    assert 5 <= driver.probes <= 10_000 / FIRST_REST
    assert driver.lost <= 0.02 * (driver.plain + 16) * 1.1


def test_no_probe_is_due_while_the_plain_step_is_unknown():
    cost = LiveCost()
    for _ in range(200):
        cost.tell(9, 8, 0.01)
    assert cost.probe(8, 10) == 0 and cost.told.drafted == 200


def test_the_array_is_shared_and_cannot_be_written_to():
    cost = LiveCost(curve(gentle))
    seconds = cost.seconds(8, 1)
    assert seconds is not None and cost.seconds(8, 1) is not None
    with pytest.raises(ValueError, match="read-only"):
        seconds[1] = 0.0


def test_memory_is_flat():
    cost, random = LiveCost(curve(gentle)), Random(5)
    sizes = []
    for steps in (40_000, 40_000):
        for _ in range(steps):
            sequences = random.randint(1, 40)
            cost.tell(sequences + random.choice((0, 0, 1, 5, 60)), sequences, random.lognormvariate(-4, 0.3))
        sizes.append(len(pickle.dumps(cost)))
    assert sizes[1] < sizes[0] * 1.05


TOLD = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 12), st.floats(1e-4, 10.0), st.booleans()), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(TOLD, st.booleans(), st.integers(1, 20))
def test_whatever_it_is_told_the_array_is_one_that_a_policy_can_use(
    told: list[tuple[int, int, float, bool]], measured: bool, sequences: int
):
    cost = LiveCost(curve(gentle)) if measured else LiveCost()
    for c, drafts, seconds, prefill in told:
        cost.tell(c + drafts, c, seconds, prefill)
        found = cost.seconds(40, sequences)
        assert 0 <= cost.probe(sequences, 7) <= 7
        if found is not None:
            assert found.shape == (41,) and np.all(np.isfinite(found)) and found[0] == found[1] > 0
            assert np.all(np.diff(found) >= 0)


@example([0.875, 0.84375, 0.84375, 1.0], 1)
@given(st.lists(st.floats(1e-3, 1.0), min_size=LEAST, max_size=40), st.integers(1, 9))
def test_a_batch_that_never_changes_takes_what_it_was_told_to_within_bounds(told: list[float], size: int):
    """But for CHANGED, by which an array may be behind."""
    cost = LiveCost()
    for seconds in told:
        cost.tell(size, size, seconds)
    found = cost.seconds(size)
    assert found is not None
    assert min(told) * math.exp(-CHANGED) <= found[size] * (1 + 1e-9)
    assert found[size] <= max(told) * math.exp(CHANGED) * (1 + 1e-9)
