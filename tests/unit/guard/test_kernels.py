"""The loops one by one; what they do together is in test_policy.py and tests/oracle/test_guard_policy.py."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.guard import _kernels as kernels
from breakeven.guard.policy import knobs_of, new_totals
from breakeven.guard.settings import GuardSettings
from breakeven.guard.survival import Survival

KNOBS = knobs_of(GuardSettings())


def state(*rows: dict[int, float]) -> np.ndarray:
    made = np.zeros((len(rows), kernels.COLUMNS))
    made[:, kernels.COST] = 1.0
    for row, values in zip(made, rows, strict=True):
        for column, value in values.items():
            row[column] = value
    return made


def matched(length: int, available: int, period: int = 500, **more: float) -> dict[int, float]:
    found = {kernels.LENGTH: length, kernels.AVAILABLE: available, kernels.PERIOD: period}
    return found | {getattr(kernels, name): value for name, value in more.items()}


def survival(row: dict[int, float], counts: np.ndarray | None = None) -> np.ndarray:
    filled = np.zeros(int(row[kernels.AVAILABLE]))
    kernels.survive(state(row), 0, Survival().counts if counts is None else counts, KNOBS, filled)
    return filled


def test_a_draft_survives_by_the_chance_of_each_of_its_tokens():
    found = survival(matched(3, 3))
    chances = [kernels.chance(Survival().counts, KNOBS, 3 + j) for j in range(3)]
    assert found == pytest.approx(np.cumprod(chances))


def test_a_request_that_hits_more_than_expected_is_expected_to_go_on():
    plain = survival(matched(4, 5))
    better = survival(matched(4, 5, TRIALS=50, HITS=48, EXPECTED=33))
    worse = survival(matched(4, 5, TRIALS=50, HITS=10, EXPECTED=33))
    assert (worse < plain).all() and (plain < better).all() and better[0] < 1


def test_one_that_hits_as_expected_changes_nothing():
    assert survival(matched(4, 5, TRIALS=50, HITS=33, EXPECTED=33)) == pytest.approx(survival(matched(4, 5)))


def ranked(rows: np.ndarray, available: list[int], most: int | None = None) -> list[int]:
    order = np.empty(sum(available) if most is None else most, np.int64)
    kernels.rank(state(*(matched(2, a) for a in available)), np.arange(len(available)), rows, order)
    return order.tolist()


def test_tokens_are_taken_in_falling_order_of_their_chance():
    rows = np.array([[0.9, 0.5, 0.1], [0.8, 0.7, 0.6], [0.95, 0.0, 0.0]])
    assert ranked(rows, [3, 3, 1]) == [2, 0, 1, 1, 1, 0, 0]
    assert ranked(rows, [3, 3, 1], most=3) == [2, 0, 1]


def test_requests_without_a_draft_are_not_ranked():
    assert ranked(np.array([[0.9, 0.5], [0.0, 0.0], [0.6, 0.4]]), [2, 0, 2]) == [0, 2, 0, 2]


def test_of_many_requests_the_likeliest_come_first():
    rng = np.random.default_rng(5)
    rows = np.sort(rng.random((40, 8)))[:, ::-1]
    available = rng.integers(0, 9, 40).tolist()
    order = ranked(rows, available)
    taken = [0] * 40
    values = []
    for i in order:
        values.append(rows[i, taken[i]])
        taken[i] += 1
    assert taken == available
    assert values == sorted(values, reverse=True)


def best(chances: list[float], seconds: list[float], rate: float, slack: float) -> tuple[int, int, int]:
    order, row = np.zeros(len(chances), np.int64), np.array([np.cumprod(chances)])
    found = kernels.best_of(order, row, np.array(seconds), rate, slack, np.zeros(1, np.int64))
    return tuple(int(n) for n in found)


def test_a_window_is_chosen_beyond_a_step_of_the_cost():
    """One token costs as much as four: kernels and graphs have such sizes."""
    assert best([0.5] * 4, [1, 1, 1.6, 1.6, 1.6, 1.6], 1.0, 9.0) == (4, 4, 4)
    assert best([0.5] * 4, [1, 1, 1.6, 2.6, 2.6, 2.6], 1.0, 9.0) == (0, 0, 4)
    assert best([0.65] * 4, [1, 1, 1.6, 2.6, 2.6, 2.6], 1.0, 9.0) == (1, 1, 4)


def test_what_is_wanted_and_cannot_be_borne_becomes_less():
    assert best([0.9] * 3, [1, 1, 1.3, 1.6, 1.9], 1.0, 0.65) == (3, 2, 2)
    assert best([0.9] * 3, [1, 1, 1.3, 1.6, 1.9], 1.0, 0.1) == (3, 0, 0)


def test_a_rate_that_is_achieved_makes_delays_dearer():
    seconds = [1, 1, 1.5, 2.0, 2.5]
    assert best([0.85] * 3, seconds, 1.0, 9.0)[0] == 3
    assert best([0.85] * 3, seconds, 1.6, 9.0)[0] == 1


def test_the_slack_of_a_ledger():
    spending = 0.02 / 0.98
    for saved, plain, slack in ((0, 0, spending), (1, 99, 1 + 100 * spending), (-2, 99, -2 + 100 * spending)):
        row = {kernels.SAVED: saved, kernels.PLAIN: plain}
        assert kernels.slack_of(state(row), 0, KNOBS) == pytest.approx(slack)


def test_an_allowance_is_what_a_longer_reply_may_lose():
    knobs = knobs_of(GuardSettings(allowance_steps=16))
    for plain, tokens in ((0, 16), (15, 16), (16, 17)):
        row = {kernels.PLAIN: plain}
        assert kernels.slack_of(state(row), 0, knobs) == pytest.approx(tokens * 0.02 / 0.98)


def credited(row: dict[int, float], emitted: int, agreed: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    made, survival, totals = state(row), Survival(), new_totals()
    kernels.credit(made, 0, survival.counts, KNOBS, emitted, agreed, totals)
    return made[0], survival.counts.sum(axis=0), totals[: kernels.REASONS].tolist()


@pytest.mark.parametrize(
    ("available", "drafted", "emitted", "agreed", "trials", "hits", "run"),
    [
        (5, 0, 1, 1, 1, 1, 3),  # a plain step that the draft would have had
        (5, 0, 1, 0, 1, 0, 0),
        (5, 3, 3, 2, 3, 2, 0),  # two accepted, and the third token is another
        (5, 3, 4, 3, 4, 3, 0),  # all accepted, and the token after them is not that of the draft
        (5, 3, 4, 4, 4, 4, 6),  # all accepted, and it is
        (3, 3, 4, 3, 3, 3, 6),  # all accepted, and the draft says nothing of the token after
        (5, 3, 2, 2, 2, 2, 4),  # the output ends
        (0, 0, 1, 0, 0, 0, 0),  # no match
    ],
)  # fmt: skip
def test_trials_of_a_step(
    available: int, drafted: int, emitted: int, agreed: int, trials: int, hits: int, run: int
):
    row, counted, totals = credited(matched(4, available, DRAFTED=drafted, RUN=2, COST=1.5), emitted, agreed)
    assert counted.tolist() == [trials, hits]
    assert (row[kernels.TRIALS] > 0) == (trials > 0)
    assert row[kernels.RUN] == run
    assert (row[kernels.SAVED], row[kernels.PLAIN]) == (emitted - 1.5, emitted)
    assert totals == [0, drafted, min(agreed, drafted), available - drafted, trials, hits]


def test_a_step_that_was_not_decided_is_a_plain_one():
    made = state(matched(4, 3, DRAFTED=2, COST=1.5))
    for _ in range(2):
        kernels.credit(made, 0, Survival().counts, KNOBS, 1, 0, new_totals())
    assert made[0, kernels.SAVED] == pytest.approx(-0.5)


def test_a_loop_teaches_itself_only():
    """The match lies within the run that is going on."""
    for run, period, taught in ((5, 6, 1), (6, 6, 0), (kernels.LONGEST_RUN, 900, 0), (63, 900, 1)):
        row, counted, _ = credited(matched(20, 4, period=period, RUN=run), 1, 1)
        assert counted[0] == taught
        assert row[kernels.TRIALS] == 1


def test_one_request_does_not_teach_for_all():
    _, counted, _ = credited(matched(4, 4, TAUGHT=kernels.MOST_TAUGHT - 1), 3, 3)
    assert counted[0] == 1
