from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.load import COUNTS, Load, between, fell

counts = st.none() | st.integers(0, 10**9)
loads = st.builds(
    Load,
    **dict.fromkeys(COUNTS, counts),
    running=st.none() | st.floats(0, 99),
    token_s=st.none() | st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)),
)


def test_what_happened_between_two_readings():
    before = Load(requests=3, output_tokens=90, prefix_queries=7, running=4, kv_usage=0.5, token_s=(1.0, 80))
    after = Load(requests=5, output_tokens=150, prefix_queries=7, running=1, waiting=2, token_s=(1.5, 120))
    assert between(before, after) == Load(
        requests=2, output_tokens=60, prefix_queries=0, running=1, waiting=2, token_s=(0.5, 40)
    )


def test_a_count_that_fell_is_unknown_and_no_less_than_nothing():
    before, after = (
        Load(requests=3, output_tokens=90, token_s=(2.0, 9)),
        Load(requests=2, output_tokens=95, token_s=(1.0, 9)),
    )
    assert fell(before, after) and not fell(before, before)
    assert between(before, after) == Load(output_tokens=5)


@given(loads, loads)
def test_a_difference_knows_only_what_both_know(before: Load, after: Load):
    change = between(before, after)
    for name in COUNTS:
        a, b, c = (getattr(one, name) for one in (before, after, change))
        assert c == (None if a is None or b is None or b < a else b - a)
    assert (change.running, change.kv_usage) == (after.running, after.kv_usage)
    assert change.token_s is None or min(change.token_s) >= 0


@given(loads, loads)
def test_two_stretches_of_time_add_up(first: Load, second: Load):
    both = first + second
    for name in COUNTS:
        a, b, c = (getattr(one, name) for one in (first, second, both))
        assert c == (None if a is None or b is None else a + b)
    assert both.running == second.running
