from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.coverage import busiest_device_experts, distinct_experts, effective_tokens
from breakeven.cost.geometry import Experts
from breakeven.errors import UsageError

KIMI = Experts(count=384, top_k=8, ff=2048, shared=1, shared_ff=2048)
EXPERTS = st.integers(1, 512).flatmap(
    lambda count: st.builds(Experts, count=st.just(count), top_k=st.integers(1, count), ff=st.just(1))
)
TOKENS = st.floats(1, 4096)
SEQUENCES = st.integers(1, 512)
REUSES = st.floats(0, 1)
SLACK = 1e-9


def test_six_tokens_of_kimi_wake_46_experts_of_384():
    assert distinct_experts(KIMI, 6, reuse=0) == pytest.approx(45.6, abs=0.05)
    assert distinct_experts(KIMI, 6, reuse=0.3) == pytest.approx(34.7, abs=0.05)


@given(EXPERTS, REUSES)
def test_one_token_wakes_its_own(experts: Experts, reuse: float):
    assert distinct_experts(experts, 1, reuse=reuse) == pytest.approx(experts.top_k)


@given(EXPERTS, TOKENS, SEQUENCES, REUSES)
def test_between_those_of_one_token_and_all(experts: Experts, tokens: float, sequences: int, reuse: float):
    found = distinct_experts(experts, tokens, sequences, reuse)
    assert experts.top_k - SLACK <= found <= experts.count


@given(EXPERTS, TOKENS, TOKENS, SEQUENCES, SEQUENCES, REUSES)
def test_more_tokens_and_more_sequences_wake_no_fewer(
    experts: Experts, t1: float, t2: float, n1: int, n2: int, reuse: float
):
    fewer = distinct_experts(experts, min(t1, t2), min(n1, n2), reuse)
    assert fewer <= distinct_experts(experts, max(t1, t2), max(n1, n2), reuse) + SLACK


@given(EXPERTS, TOKENS, SEQUENCES, REUSES, REUSES)
def test_more_reuse_wakes_no_more(experts: Experts, tokens: float, sequences: int, r1: float, r2: float):
    most = distinct_experts(experts, tokens, sequences, max(r1, r2))
    assert most <= distinct_experts(experts, tokens, sequences, min(r1, r2)) + SLACK


@given(EXPERTS, st.integers(1, 64))
def test_without_reuse_tokens_and_sequences_are_alike(experts: Experts, n: int):
    assert distinct_experts(experts, n, 1, 0) == pytest.approx(distinct_experts(experts, 1, n, 0))


@given(EXPERTS, st.integers(1, 64), SEQUENCES)
def test_neighbours_that_reuse_all_cost_as_one_token(experts: Experts, tokens: int, sequences: int):
    all_reused = distinct_experts(experts, tokens, sequences, 1)
    assert all_reused == pytest.approx(distinct_experts(experts, 1, sequences))


@pytest.mark.parametrize("tokens", [2, 6, 20])
def test_as_a_router_at_random_would(tokens: int):
    random, experts, trials = Random(7), Experts(count=32, top_k=4, ff=1), 4000
    drawn = [len({e for _ in range(tokens) for e in random.sample(range(32), 4)}) for _ in range(trials)]
    assert distinct_experts(experts, tokens, reuse=0) == pytest.approx(sum(drawn) / trials, rel=0.01)


@given(EXPERTS, TOKENS, st.integers(1, 64))
def test_the_busiest_device_has_the_mean_at_least_and_all_at_most(
    experts: Experts, tokens: float, devices: int
):
    distinct = distinct_experts(experts, tokens, reuse=0)
    busiest = busiest_device_experts(experts, distinct, devices)
    assert distinct / devices - SLACK <= busiest <= distinct + SLACK
    assert busiest <= experts.count / devices + SLACK


@pytest.mark.parametrize("distinct", [8, 32, 128, 300, 384])
def test_the_busiest_of_8_devices_as_drawn(distinct: int):
    random, trials = Random(7), 2000
    devices_of = [[e % 8 for e in random.sample(range(384), distinct)] for _ in range(trials)]
    drawn = sum(max(ds.count(d) for d in range(8)) for ds in devices_of) / trials
    assert busiest_device_experts(KIMI, distinct, 8) == pytest.approx(drawn, rel=0.15)


@pytest.mark.parametrize("tokens", [0, 0.5, -1, float("nan")])
def test_less_than_a_token_is_refused(tokens: float):
    with pytest.raises(UsageError, match="at least 1"):
        effective_tokens(tokens, 0.5)


@pytest.mark.parametrize("reuse", [-0.1, 1.1, float("nan")])
def test_a_reuse_that_is_no_share_is_refused(reuse: float):
    with pytest.raises(UsageError, match="a reuse of"):
        effective_tokens(2, reuse)


def test_no_sequence_is_refused():
    with pytest.raises(UsageError, match="0 sequences"):
        distinct_experts(KIMI, 1, 0)
