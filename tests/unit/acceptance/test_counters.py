import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import COUNTS, SpecCounters, fell

counts = st.integers(0, 10**6) | st.none()
counters = st.builds(
    SpecCounters,
    steps=counts,
    drafts=counts,
    drafted_tokens=counts,
    accepted_tokens=counts,
    accepted_per_position=st.none() | st.lists(st.integers(0, 99)).map(tuple),
    emitted_tokens=counts,
    source=st.just("x"),
)


def test_the_four_ratios_differ_on_one_trace():
    c = SpecCounters(steps=100, drafts=43, drafted_tokens=215, accepted_tokens=67)
    assert c.acceptance_rate == pytest.approx(67 / 215)
    assert c.mean_acceptance_length == pytest.approx(1 + 67 / 43)
    assert c.tokens_per_step == pytest.approx(1.67)
    assert c.draft_share == pytest.approx(0.43)


def test_no_drafts_give_no_ratio_instead_of_zero():
    c = SpecCounters(steps=10, drafts=0, drafted_tokens=0, accepted_tokens=0)
    assert c.acceptance_rate is None
    assert c.mean_acceptance_length is None
    assert c.tokens_per_step == 1
    assert c.draft_share == 0


@given(counters, counters)
def test_a_sum_knows_only_what_both_sides_know(a: SpecCounters, b: SpecCounters):
    total = a + b
    for name in COUNTS:
        left, right = getattr(a, name), getattr(b, name)
        expected = None if left is None or right is None else left + right
        assert getattr(total, name) == expected
    if a.accepted_per_position is not None and b.accepted_per_position is not None:
        assert sum(total.accepted_per_position) == sum(a.accepted_per_position) + sum(b.accepted_per_position)


@given(counters)
def test_the_sum_with_itself_keeps_every_ratio(c: SpecCounters):
    doubled = c + c
    assert doubled.acceptance_rate == c.acceptance_rate
    assert doubled.draft_share == c.draft_share
    assert doubled.tokens_per_step == c.tokens_per_step


@given(counters, counters)
def test_what_was_added_can_be_taken_away(a: SpecCounters, b: SpecCounters):
    rest = (a + b) - b
    for name in COUNTS:
        assert getattr(rest, name) in (None, getattr(a, name))
    assert not fell(b, a + b)


def test_counts_that_fell():
    earlier = SpecCounters(9, 5, 15, 9, (5, 3, 1))
    assert fell(earlier, SpecCounters(8, 5, 15, 9, (5, 3, 1)))
    assert fell(earlier, SpecCounters(9, 5, 15, 9, (5, 2, 2)))
    assert fell(earlier, SpecCounters(9, 9, 27, 20, ()))
    assert not fell(earlier, SpecCounters(None, 6, None, 9, None))


def test_emitted_tokens_that_are_counted_make_tokens_per_step():
    """The last step may have accepted tokens that the end of the reply cut off."""
    c = SpecCounters(steps=1, drafts=1, drafted_tokens=7, accepted_tokens=6, emitted_tokens=1)
    assert c.tokens_per_step == 1
    assert c.mean_acceptance_length == 7
