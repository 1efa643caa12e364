"""The head beside drafters without training on the same replies, and a choice for each reply."""

import numpy as np
import pytest

from breakeven.eagle.evaluate import journal
from breakeven.eagle.evaluate.rivals import RIVALS, combined, ranked, replayed, rivals
from tests.unit.eagle.evaluate.held import HeldReplies, reply

K = 3


def new_tokens(*accepted: list[int]) -> HeldReplies:
    """Replies in which no token comes twice."""
    return HeldReplies(
        reply(one, range(1000 * number, 1000 * number + len(one) + 2), str(number))
        for number, one in enumerate(accepted)
    )


def mixed() -> HeldReplies:
    """A reply that repeats itself, on which the head has nothing accepted; and one of new tokens, on which it
    has all."""
    again = reply([0] * 31, [1, *[5, 6, 7, 8] * 8], "again")
    return HeldReplies([again, reply([K] * 23, range(20, 45), "new")])


def test_without_repeats_only_the_head_has_anything_accepted():
    source = new_tokens([3, 2, 1, 0], [1, 0, 1, 0])
    own, *others = [replayed(source, K), *rivals(source, K)]
    assert [one.drafter for one in others] == list(RIVALS)
    first, *rest = ranked([*others, own])
    assert first.drafter == journal.COUNTS and first.settings["k"] == K
    assert first.tokens_per_step == pytest.approx(8 / 3)
    assert {rival.tokens_per_step for rival in rest} == {1.0}
    made = combined([own, *others])
    assert made.best_single == journal.COUNTS and made.chosen[journal.COUNTS] == 2
    assert made.gain.estimate == 1 and made.tokens_per_step == first.tokens_per_step


def test_a_choice_for_each_reply_takes_the_better_of_both():
    source = mixed()
    replays = [replayed(source, K), *rivals(source, K)]
    made = combined(replays)
    fewest = [min(one.requests[place].counters.steps for one in replays) for place in range(2)]
    assert made.tokens_per_step == pytest.approx((31 + 23) / sum(fewest))
    assert made.chosen[journal.COUNTS] == 1 and sum(made.chosen.values()) == 2
    best = max(one.total.tokens_per_step for one in replays)
    assert made.gain.estimate == pytest.approx(made.tokens_per_step / best) and made.gain.estimate > 1


def test_a_choice_is_never_worse_than_the_best_single_drafter():
    rng = np.random.default_rng(0)
    accepted = [
        np.minimum(rng.integers(0, K + 1, size), np.arange(size)[::-1]).tolist() for size in (9, 30, 17)
    ]
    source = new_tokens(*accepted)
    assert combined([replayed(source, K), *rivals(source, K)]).gain.low >= 1
    assert combined([replayed(mixed(), K), *rivals(mixed(), K)]).gain.low >= 1


def test_a_server_drafts_at_every_step_but_the_prefill():
    own = replayed(new_tokens([0, 0]), K)
    assert own.total.counters.drafts == own.total.counters.steps == 2
