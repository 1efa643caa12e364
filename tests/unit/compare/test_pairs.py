import numpy as np
import pytest

from breakeven.compare.pairs import complete_repeats, pair, replies
from breakeven.errors import UsageError
from tests.cases.builders import reply, run


def test_only_requests_with_a_speed_on_both_sides_are_paired():
    baseline = [reply("a", 0), reply("a", 1), reply("b", 0), reply("c", 0), reply("d", 0, tokens=1)]
    candidate = [reply("a", 0), reply("a", 1, error="cut off"), reply("b", 0, tpot_s=0.01), reply("d", 0)]
    pairs = pair(replies(baseline, "baseline"), replies(candidate, "candidate"))
    assert pairs.prompt_ids == ("a", "b")
    assert pairs.counts == (1, 1)
    assert np.exp(pairs.log_ratios[:, 0]) == pytest.approx([1.0, 2.0], rel=1e-6)


def test_gaps_are_nan():
    baseline = run(repeats=2, prompts=2)
    pairs = pair(replies(baseline, "baseline"), replies(baseline[1:], "candidate"))
    assert np.isnan(pairs.log_ratios).sum() == 1
    assert dict(zip(pairs.prompt_ids, pairs.counts, strict=True)) == {"p0": 1, "p1": 2}


def test_nothing_in_common():
    assert pair(replies([reply("a")], "baseline"), replies([reply("b")], "candidate")).prompt_ids == ()


def test_a_request_twice_on_one_side_is_refused():
    with pytest.raises(UsageError, match="candidate run holds request p0#0 twice"):
        replies([reply(), reply()], "candidate")


def test_complete_repeats_count_failures_but_no_gaps():
    baseline, candidate = run(repeats=3, prompts=4), run(repeats=3, prompts=4)[:-1]
    assert complete_repeats(replies(baseline, "baseline"), replies(candidate, "candidate")) == 2
    candidate.append(reply("p3", 2, error="cut off"))
    assert complete_repeats(replies(baseline, "baseline"), replies(candidate, "candidate")) == 3
