"""Windows that are too long, too short, or dear at any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.cost.drafting import drafting_cost
from breakeven.diagnose.causes import break_even, window
from breakeven.diagnose.causes.break_even import below_break_even
from breakeven.diagnose.causes.window import too_long, too_short
from breakeven.diagnose.causes.window_costs import position_rates
from breakeven.diagnose.evidence import Drafting, Evidence, Replayed, Setting
from breakeven.explain.observed import from_speeds
from tests.unit.diagnose.compared import DENSE, compared, counted, uncosted
from tests.unit.diagnose.healthy import healthy, replies
from tests.unit.explain.cases import calibrated

LONG_MS = {1: 13.0, 2: 14.0, 4: 16.0, 8: 20.0, 16: 28.0, 32: 44.0}
"""A millisecond for every further token."""
LONG = calibrated(False, LONG_MS)
FADING = (0.6, 0.3, 0.1, 0.02, *[0.01] * 12)


def acceptance(histogram: Mapping[tuple[int, int], int]) -> Acceptance:
    """Of steps by (drafted, accepted)."""
    rows = np.array([(*pair, steps) for pair, steps in sorted(histogram.items())], np.int64).reshape(-1, 3)
    emitted = int(((rows[:, 1] + 1) * rows[:, 2]).sum())
    return Acceptance(10, emitted + 10, emitted, rows, np.zeros((DECILES, 4), np.int64))


def setting(
    k: int, cost_per_token: float | None, n: tuple[int, int] = (2, 4), share: float = 0.5, rate: float = 0.5
) -> Setting:
    """1,000 steps, this share of which drafts k tokens and has as many of them accepted."""
    drafts = round(1000 * share)
    hits = round(drafts * rate)
    made = acceptance({(0, 0): 1000 - drafts, (k, 0): drafts - hits, (k, k): hits})
    return Setting(k, *n, made, cost_per_token)


@pytest.mark.parametrize("cause", (*window.CAUSES, *break_even.CAUSES))
@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(),
        healthy(),
        healthy(cost=DENSE),
        compared(2.0),
        compared(2.0, replayed=Replayed(setting(4, 0.50), (setting(3, 0.49), setting(8, 0.49)))),
    ],
    ids=["nothing known", "counts alone", "no speeds", "as predicted", "others are no better"],
)
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


def naive_best(rates: tuple[float, ...]) -> int:
    """A step of 1 + k tokens takes 13 + k ms on the curve, and drafting adds what vLLM's lookup does."""
    cost = drafting_cost("vllm", "ngram")

    def per_token(k: int) -> float:
        step_s = (13 + k) * 1e-3 + cost.drafted_step_s.estimate + cost.step_s.estimate
        return step_s / (1 + sum(rates[:k]))

    return min(range(1, len(rates) + 1), key=per_token)


def test_a_tail_that_does_not_pay() -> None:
    evidence = compared(0.9, counted(FADING), LONG, drafting=Drafting("ngram", 16, 2, 4))
    found = too_long(evidence)
    assert found and found.confidence == "high" and naive_best(FADING) == 2
    assert found.title == "The window of 16 is too long: 2 is better"
    assert "positions 3 to 16 are accepted in 1.0 % to 10.0 % of drafts" in found.evidence
    assert found.next_command == "breakeven engine vllm --method ngram --k 2 --min-n 2 --max-n 4"


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=15).map(lambda found: sorted(found, reverse=True)))
def test_the_better_window_is_the_cheapest(found: list[float]) -> None:
    rates = tuple(round(rate, 3) for rate in found)
    evidence = replace(
        healthy(counters=counted(rates), cost=LONG), drafting=Drafting("ngram", len(rates), 2, 4)
    )
    said = too_long(evidence)
    if said is not None:
        assert f": {naive_best(rates)} is better" in said.title
    elif naive_best(rates) < len(rates):
        best, k = naive_best(rates), len(rates)
        now, then = ((13.543 + n) / (1 + sum(rates[:n])) for n in (k, best))
        assert now < 1.0501 * then or then >= 12.99, "less than 5 % apart, or no window pays"


def test_replay_says_which_window_is_better() -> None:
    replayed = Replayed(setting(4, 1.10), (setting(2, 0.92), setting(3, 0.97)))
    found = too_long(compared(0.95, replayed=replayed))
    assert found and found.confidence == "high" and ": 2 is better" in found.title
    assert "1.10 plain steps" in found.evidence and "0.92 with 2 (replay" in found.evidence


def test_a_shorter_window_that_does_not_pay_either_is_not_better() -> None:
    replayed = Replayed(setting(4, 1.30), (setting(2, 1.10),))
    assert too_long(compared(0.8, replayed=replayed)) is None


def test_drafts_shorter_than_the_window_do_not_cost_all_of_it() -> None:
    """Eight tokens at most and 1.2 on average: the tail is seldom drafted at all."""
    full = counted((0.6, 0.1, 0.05, 0.05, 0.0, 0.0, 0.0, 0.0))
    short = replace(full, drafted_tokens=1200)
    drafting = Drafting("ngram", 8, 2, 4)
    assert too_long(healthy(counters=full, cost=LONG, drafting=drafting))
    assert too_long(healthy(counters=short, cost=LONG, drafting=drafting)) is None


def test_another_n_range_is_no_better_window() -> None:
    other = setting(2, 0.5, n=(1, 3))
    assert too_long(compared(2.0, replayed=Replayed(setting(4, 0.9), (other,)))) is None


def test_no_window_pays_where_none_costs_less_than_a_plain_step() -> None:
    evidence = healthy(counters=counted((0.02, 0.01, 0.0, 0.0)), cost=LONG)
    assert too_long(evidence) is None
    found = below_break_even(evidence)
    assert found and found.confidence == "high" and "no shorter window pays" in found.evidence
    assert f"{(17 + 0.5 - 13) / 13 / 4:.1%}".replace("%", " %") in found.evidence


def test_acceptance_below_what_two_speeds_imply() -> None:
    evidence = uncosted(0.7, counted((0.2, 0.1, 0.05, 0.05)))
    found = below_break_even(evidence)
    assert found and found.id == "step_gain_below_cost" and found.confidence == "low"
    # 1.4 tokens a step at 0.7 the speed: 2 plain steps, which 4 drafted tokens pay at 1 / 4
    assert found and "2.00 plain steps" in found.evidence and "25.0 %" in found.evidence
    assert below_break_even(uncosted(1.2, counted((0.2, 0.1, 0.05, 0.05)))) is None


def test_the_two_speeds_of_a_write_up_do_not_say_whether_verifying_is_dear() -> None:
    """n-gram, k 5, 62.6 tok/s before and 46.4 with it at an acceptance of 17 to 31 %, and no more."""
    seen = from_speeds("coding", 62.6, 46.4, (0.17, 0.31))
    evidence = Evidence(drafting=Drafting("ngram", 5), engine="vllm", observations=(seen,))
    found = below_break_even(evidence)
    assert found and found.id == "step_gain_below_cost" and found.confidence == "low"
    assert "not known" in found.evidence and "pay from" not in found.evidence
    assert found.next_command.startswith("breakeven calibrate")


def test_how_often_drafts_are_made_must_be_known_for_a_better_window() -> None:
    drafting = Drafting("ngram", 16, 2, 4)
    unknown = replace(counted(FADING), steps=None)
    found = too_long(healthy(counters=unknown, cost=LONG, drafting=drafting))
    assert found and found.confidence == "low" and "may be too long" in found.title
    assert "how many steps draft is not known" in found.evidence
    rare = counted(FADING, steps=100_000)
    assert too_long(healthy(counters=rare, cost=LONG, drafting=drafting)) is None
    full = replace(counted(FULL), steps=None)
    assert too_short(healthy(counters=full, cost=LONG, drafting=SHORT)) is None


def test_how_dear_verifying_is_does_not_hang_on_how_often_drafts_are_made() -> None:
    unknown = replace(counted((0.02, 0.01, 0.0, 0.0)), steps=None)
    found = below_break_even(healthy(counters=unknown, cost=LONG))
    assert found and "where every step drafts" in found.evidence
    good = replace(counted((0.9, 0.8, 0.7, 0.6)), steps=None)
    assert below_break_even(healthy(counters=good, cost=LONG)) is None


def test_the_flat_cost_of_rare_drafts_must_be_paid_too() -> None:
    """Drafts in 1 % of steps pay for themselves, and not for the lookup in all of them."""
    rates = (0.32, 0.16, 0.04, 0.0)
    every, rare = (healthy(counters=counted(rates, steps=n), cost=LONG) for n in (1000, 100_000))
    assert below_break_even(every) is None
    assert below_break_even(rare)


def test_dead_positions_are_said_without_a_cost() -> None:
    evidence = healthy(counters=counted(FADING), drafting=Drafting("ngram", 16, 2, 4))
    found = too_long(evidence)
    assert found and found.confidence == "medium" and "positions 4 to 16" in found.evidence
    few = healthy(counters=counted((0.6, 0.4, 0.3, 0.02)))
    found = too_long(few)
    assert found and found.confidence == "low" and "position 4 is accepted in 2.0 %" in found.evidence
    assert too_long(uncosted(1.3, counted((0.6, 0.4, 0.3, 0.02)))) is None, "it pays as it is"


def test_few_drafts_tell_nothing() -> None:
    assert position_rates(healthy(counters=counted(FADING, drafts=99))) == ()
    assert len(position_rates(healthy(counters=counted(FADING, drafts=100)))) == 16


def test_positions_that_nothing_reached_count_as_never_accepted() -> None:
    counters = replace(counted((0.5, 0.2)), accepted_per_position=(500, 200))
    assert position_rates(healthy(counters=counters)) == (0.5, 0.2, 0.0, 0.0)


def test_positions_are_those_of_a_replay_where_none_are_counted() -> None:
    counters = replace(counted((0.5, 0.5, 0.5, 0.5)), accepted_per_position=None)
    replayed = Replayed(setting(4, None, rate=0.25))
    assert position_rates(healthy(counters=counters, replayed=replayed)) == (0.25, 0.25, 0.25, 0.25)


FULL = (0.99, 0.98, 0.97)
SHORT = Drafting("ngram", 3, 2, 4)


def test_a_window_that_is_too_short() -> None:
    found = too_short(compared(3.0, counted(FULL), drafting=SHORT))
    assert found and found.confidence == "medium" and "window of 6" in found.evidence
    replayed = Replayed(setting(3, 0.30), (setting(8, 0.20),))
    found = too_short(compared(3.0, counted(FULL), drafting=SHORT, replayed=replayed))
    assert found and found.confidence == "high" and "too short: 8 is better" in found.title


def test_a_longer_window_that_would_cost_too_much() -> None:
    steep = calibrated(False, {1: 13.0, 2: 13.1, 3: 13.2, 4: 13.3, 8: 60.0})
    assert too_short(compared(3.0, counted(FULL), steep, drafting=SHORT)) is None


def test_without_a_cost_a_short_window_is_a_guess_and_a_loop_none() -> None:
    found = too_short(healthy(counters=counted(FULL), drafting=SHORT))
    assert found and found.confidence == "low"
    looping = healthy(counters=counted(FULL), drafting=SHORT, replies=replies(looping=("p#0",)))
    assert too_short(looping) is None
    assert too_short(uncosted(2.5, counted(FULL), drafting=SHORT)) is None, "it pays as it is"
