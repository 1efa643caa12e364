import math

import pytest

from breakeven.errors import UsageError
from breakeven.guard._kernels import COST_UNKNOWN, DRAFT, HIGH_LOAD, LEDGER, NO_MATCH, UNLIKELY
from breakeven.guard.reasons import SENTENCES, Reason
from breakeven.guard.settings import GuardSettings


def test_what_may_be_spent_for_each_token_keeps_the_speedup():
    """A request that spends it all takes 1 / (1 − ε) plain steps a token."""
    for epsilon in (0.0, 0.01, 0.02, 0.5):
        assert 1 / (1 + GuardSettings(epsilon=epsilon).spending) == pytest.approx(1 - epsilon)
    assert GuardSettings(epsilon=math.inf).spending == math.inf


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epsilon": -0.1}, "epsilon -0.1: give a share from 0 to below 1"),
        ({"epsilon": 1.0}, "epsilon 1: give"),
        ({"epsilon": math.nan}, "epsilon nan: give"),
        ({"most_tokens": 0}, "most_tokens 0: give 1 to 64"),
        ({"most_tokens": 65}, "most_tokens 65: give 1 to 64"),
        ({"least_match": 0}, "matches of 0 to 32 tokens"),
        ({"least_match": 5, "most_match": 4}, "matches of 5 to 4 tokens"),
        ({"most_match": 5000}, "at most 1024"),
        ({"allowance_steps": -1}, "allowance_steps -1: give 0 to 1000000"),
        ({"allowance_steps": 10**400}, "give 0 to 1000000"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, float], said: str):
    with pytest.raises(UsageError, match=said):
        GuardSettings(**wrong)


def test_each_reason_has_a_sentence_and_the_loops_number():
    assert set(SENTENCES) == set(Reason)
    assert Reason.LEDGER.sentence == SENTENCES[Reason.LEDGER]
    numbers = {
        Reason.DRAFTED: DRAFT,
        Reason.NO_MATCH: NO_MATCH,
        Reason.UNLIKELY: UNLIKELY,
        Reason.HIGH_LOAD: HIGH_LOAD,
        Reason.LEDGER: LEDGER,
        Reason.COST_UNKNOWN: COST_UNKNOWN,
    }
    assert all(reason == number for reason, number in numbers.items())
    assert [int(reason) for reason in Reason] == list(range(len(Reason)))
