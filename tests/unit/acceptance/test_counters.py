import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters

counts = st.integers(0, 10**6) | st.none()
counters = st.builds(
    SpecCounters,
    steps=counts,
    drafts=counts,
    drafted_tokens=counts,
    accepted_tokens=counts,
    accepted_per_position=st.none() | st.lists(st.integers(0, 99)).map(tuple),
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
    for name in ("steps", "drafts", "drafted_tokens", "accepted_tokens"):
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
