import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import DEFINITIONS, SpecCounters
from breakeven.acceptance.stated import exactly, over_ranks, stated
from breakeven.interval import Interval

LENGTH = "mean_acceptance_length"


def test_every_ratio_stands_beside_its_definition():
    ratios = stated(SpecCounters(100, 43, 215, 67, source="x"))
    assert [one.name for one in ratios] == list(DEFINITIONS)
    assert [one.definition for one in ratios] == list(DEFINITIONS.values())
    assert [one.value.estimate for one in ratios] == pytest.approx([67 / 215, 1 + 67 / 43, 1.67, 0.43])
    assert all(one.why == "" and one.source == "x" for one in ratios)


@pytest.mark.parametrize(
    ("counters", "name", "why"),
    [
        (
            SpecCounters(drafted_tokens=9, accepted_tokens=3, source="x"),
            LENGTH,
            "x does not count steps that drafted",
        ),
        (SpecCounters(source="x"), "acceptance_rate", "x does not count accepted tokens or drafted tokens"),
        (
            SpecCounters(drafts=3, source="vLLM /metrics"),
            "acceptance_rate",
            "vLLM /metrics was read, and its accepted tokens or drafted tokens are not known of this time",
        ),
        (SpecCounters(source="vLLM /metrics"), "draft_share", "vLLM /metrics does not count decode steps"),
        (SpecCounters(), "draft_share", "the source does not count steps that drafted or decode steps"),
        (SpecCounters(9, 0, 0, 0, source="x"), "acceptance_rate", "no drafted tokens were counted"),
        (SpecCounters(0, emitted_tokens=0, source="x"), "tokens_per_step", "no decode steps were counted"),
        (SpecCounters(emitted_tokens=5, source="x"), "tokens_per_step", "x does not count decode steps"),
    ],
)
def test_what_cannot_be_derived_says_why(counters, name, why):
    (one,) = (one for one in stated(counters) if one.name == name)
    assert (one.value, one.why) == (None, f"not derivable: {why}")


def test_ranks_are_weighted_by_what_the_ratio_divides_by():
    one = over_ranks(LENGTH, [None, math.nan, 2.90, 3.67], "x", [5, 5, 300, 100])
    assert one.value == Interval(*[pytest.approx((2.90 * 300 + 3.67 * 100) / 400)] * 3)
    assert one.source == "x, 2 of 4 ranks"


@pytest.mark.parametrize("weights", [None, [None] * 4, [1, 1, 300, None], [1, 1, 0, 100]])
def test_ranks_that_differ_without_weights_have_no_common_ratio(weights):
    one = over_ranks(LENGTH, [None, None, 2.90, 3.67], "x", weights)
    assert one.value is None
    assert one.why == (
        "not derivable: the ranks that report differ, 2.90 to 3.67, and do not say over how many steps "
        "that drafted"
    )


def test_ranks_that_agree_need_no_weights():
    assert over_ranks(LENGTH, [None, 2.5, 2.5], "x").value.estimate == 2.5
    assert over_ranks(LENGTH, [2.5], "x") == exactly(LENGTH, 2.5, "x")


@pytest.mark.parametrize("values", [[], [None], [math.nan, None, math.inf]])
def test_no_rank_that_reports_is_unknown(values):
    assert over_ranks(LENGTH, values, "x").value is None


@given(st.lists(st.tuples(st.floats(1, 9), st.integers(1, 10**6)), min_size=1, max_size=8))
def test_a_weighted_ratio_is_that_of_the_sums(ranks):
    """Each rank's length from its counts; all ranks' length from the sums of them."""
    lengths = [1 + round(length * drafts) / drafts for length, drafts in ranks]
    one = over_ranks(LENGTH, lengths, "x", [drafts for _, drafts in ranks])
    accepted = sum(round(length * drafts) for length, drafts in ranks)
    assert one.value.estimate == pytest.approx(1 + accepted / sum(drafts for _, drafts in ranks))
