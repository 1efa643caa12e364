"""Ratios by place and category, against those counted by hand; and that their intervals hold the truth."""

import numpy as np
import pytest

from breakeven.eagle.evaluate.drafted import Drafted, counted
from breakeven.eagle.evaluate.part import intervals, parts
from breakeven.eagle.evaluate.rivals import replayed
from breakeven.forecast.bootstrap import resampler
from tests.unit.eagle.evaluate.held import HeldReplies, reply

K = 3


def drafted(agrees: list[str], seed: int = 0) -> Drafted:
    """Of a reply: for each token but the first the places at which its chain agrees, as `ynn`."""
    said = np.array([[letter == "y" for letter in word] for word in agrees])
    shares = np.random.default_rng(seed).uniform(size=(2, *said.shape))
    return counted(said, *shares, greedy=len(agrees))


def of(*replies: tuple[str, list[str]], sampled: bool = False):
    """Parts of replies, each with its category and what its chains did; and what each counted."""
    counts = [drafted(agrees, seed) for seed, (_, agrees) in enumerate(replies)]
    requests = [
        reply(one.accepted, range(len(one.accepted) + 2), str(number), category)
        for number, ((category, _), one) in enumerate(zip(replies, counts, strict=True))
    ]
    return parts(replayed(HeldReplies(requests), K), counts, sampled), counts


def estimates(shares):
    return [None if one is None else pytest.approx(one.estimate) for one in shares]


def means(sums, sizes):
    return [one / size for one, size in zip(sums, sizes, strict=True)]


def test_steps_of_a_reply_by_hand():
    """Steps fall before tokens 1 (two accepted), 4 (none) and 5 (two of three, as the reply ends there)."""
    words = ["yyn", "nnn", "yyy", "nyy", "yyy", "yyy"]
    (total, by_category), _ = of(("a", words))
    chained = total.chained
    counters = chained.acceptance.counters
    assert (counters.steps, counters.drafts, counters.accepted_tokens) == (3, 3, 4)
    assert estimates(chained.accepted_by_position) == [2 / 3, 2 / 3, 0]
    assert estimates(chained.conditional_by_position) == [2 / 3, 1, 0]
    assert chained.acceptance_length.estimate == pytest.approx(1 + 4 / 3)
    assert chained.tokens_per_step.estimate == 2
    assert list(by_category) == ["a"] and by_category["a"].teacher_forced == total.teacher_forced


def test_every_token_of_a_reply_by_hand():
    words = ["yyn", "nny", "yyy", "nyy", "yyy", "yyy"]
    (total, _), (counts,) = of(("a", words))
    forced = total.teacher_forced
    assert forced.contexts == (6, 5, 4)
    assert estimates(forced.agreement_by_position) == [4 / 6, 4 / 5, 3 / 4]
    assert estimates(forced.conditional_by_position) == [4 / 6, 3 / 3, 1 / 2]
    assert forced.tokens_per_step.estimate == pytest.approx(1 + 2 / 3 + 2 / 3 + 1 / 3)
    assert estimates(forced.overlap_by_position) == means(counts.overlap, (6, 5, 4))
    assert forced.sampled_by_position is None


def test_sampled_replies_have_the_chains_own_figures():
    (total, _), (counts,) = of(("a", ["yyn", "nny", "yyy"]), sampled=True)
    assert estimates(total.teacher_forced.sampled_by_position) == means(counts.survived, (3, 2, 1))


def test_places_that_no_chain_reached_have_no_figure():
    (total, _), _ = of(("a", ["nyy", "nyy"]))
    forced = total.teacher_forced
    assert forced.contexts == (2, 1, 0)
    assert estimates(forced.conditional_by_position) == [0, None, None]
    assert estimates(forced.agreement_by_position) == [0, 1, None]
    assert estimates(total.chained.conditional_by_position) == [0, None, None]
    assert forced.tokens_per_step.estimate == 1


def test_categories_add_up():
    (total, by_category), _ = of(("a", ["yyy", "ynn"]), ("b", ["nnn"] * 4), ("a", ["yyn"] * 3))
    assert {name: part.replies for name, part in by_category.items()} == {"a": 2, "b": 1}
    assert total.output_tokens == sum(part.output_tokens for part in by_category.values())
    contexts = [part.teacher_forced.contexts for part in by_category.values()]
    assert total.teacher_forced.contexts == tuple(map(sum, zip(*contexts, strict=True)))
    assert by_category["b"].chained.tokens_per_step.estimate == 1


def test_estimates_lie_within_their_intervals_and_those_within_what_is_possible():
    rng = np.random.default_rng(0)
    words = [["".join(rng.choice(["y", "n"], K)) for _ in range(rng.integers(5, 30))] for _ in range(30)]
    (total, by_category), _ = of(*(("ab"[n % 2], one) for n, one in enumerate(words)), sampled=True)
    for part in (total, *by_category.values()):
        chained, forced = part.chained, part.teacher_forced
        shares = [
            *(*chained.accepted_by_position, *chained.conditional_by_position),
            *(*forced.agreement_by_position, *forced.conditional_by_position),
            *(*forced.overlap_by_position, *forced.sampled_by_position),
        ]
        assert all(0 <= one.low <= one.estimate <= one.high <= 1 for one in shares)
        lengths = chained.acceptance_length, chained.tokens_per_step, forced.tokens_per_step
        assert all(1 <= one.low < one.estimate < one.high <= K + 1 for one in lengths)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Requests differ in length and in how easy they are, each for itself: the ratio of sums tends to 0.5."""
    rng, held, trials, requests = np.random.default_rng(1), 0, 300, 40
    draws, everything = resampler(np.zeros(requests, np.int64)), np.ones(requests, bool)
    for _ in range(trials):
        lengths = rng.integers(5, 50, requests)
        passed = rng.binomial(lengths, rng.uniform(size=requests))
        counts = np.stack([passed, lengths], axis=1).astype(float)
        (one,) = intervals(counts, everything, draws, lambda sums: sums[..., :1] / sums[..., 1:], (0, 1))
        held += one.low <= 0.5 <= one.high
    assert 0.90 <= held / trials <= 0.99


def test_one_request_shows_no_spread():
    (total, _), _ = of(("a", ["yyn", "nny", "yyy"]))
    one = total.teacher_forced.tokens_per_step
    assert one.low == one.estimate == one.high


def test_categories_of_one_request_each_show_none_either():
    """They are resampled together: most resamples hold no request of a category."""
    _, by_category = of(*((name, ["yyn", "nny", "yyy"]) for name in "abc"))[0]
    for part in by_category.values():
        for one in (part.teacher_forced.tokens_per_step, part.chained.tokens_per_step):
            assert [one.low, one.high] == pytest.approx([one.estimate] * 2) and one.estimate > 1.5
