from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.servers.fake import Drift, Noise, Script, Speculation, timeline

PLAIN = Script(ttft_s=0.05, tpot_s=0.02, n_tokens=128)


def test_token_i_is_due_at_ttft_plus_i_times_tpot():
    times = timeline(PLAIN, 128)
    assert times.due_s == pytest.approx([0.05 + 0.02 * i for i in range(128)])
    assert times.tpot_s == pytest.approx(0.02)
    assert times.counters.steps == 127
    assert times.counters.drafts == 0


def test_what_the_first_chunk_carries_is_ready_at_once():
    times = timeline(replace(PLAIN, first_chunk_tokens=8), 128)
    assert times.tokens == (8, *[1] * 120)
    assert times.due_s[-1] - times.due_s[0] == pytest.approx(120 * 0.02)


def test_a_stall_delays_its_token_and_all_after():
    times = timeline(replace(PLAIN, stall_at=10, stall_s=0.5), 20)
    gaps = [later - earlier for earlier, later in pairwise(times.due_s)]
    assert gaps == pytest.approx([0.02] * 9 + [0.52] + [0.02] * 9)


speculations = st.builds(
    Speculation,
    k=st.integers(1, 8),
    acceptance=st.floats(0, 1),
    draft_share=st.floats(0, 1),
    verify_cost=st.floats(0, 2),
    overhead=st.floats(0, 1),
)


@settings(deadline=None, max_examples=60)
@given(speculations, st.integers(1, 300), st.binary(max_size=4))
def test_counters_agree_with_the_tokens(speculation: Speculation, n_tokens: int, key: bytes):
    times = timeline(replace(PLAIN, speculation=speculation), n_tokens, key)
    counters = times.counters
    assert sum(times.tokens) == n_tokens
    assert counters.steps == len(times.tokens) - 1
    assert 1 + counters.steps + counters.accepted_tokens == n_tokens
    assert counters.drafted_tokens == speculation.k * counters.drafts
    assert sum(counters.accepted_per_position) == counters.accepted_tokens
    assert list(counters.accepted_per_position) == sorted(counters.accepted_per_position, reverse=True)
    assert all(later >= earlier for earlier, later in pairwise(times.due_s))


@pytest.mark.parametrize(
    "speculation",
    [Speculation(3, 0.8), Speculation(5, 0.3, 0.6, verify_cost=0.9, overhead=0.1), Speculation(1, 0.0)],
)
def test_the_speedup_is_the_expected_one(speculation: Speculation):
    times = timeline(replace(PLAIN, speculation=speculation), 50_000)
    assert 0.02 / times.tpot_s == pytest.approx(speculation.speedup, rel=0.02)


def test_expected_speedup_by_hand():
    assert Speculation(2, 0.5).accepted_per_draft == 0.75
    assert Speculation(2, 0.5, 0.4, verify_cost=0.5, overhead=0.1).speedup == pytest.approx(1.3 / 1.3)


def test_acceptance_is_the_prompts_and_noise_the_requests():
    script = replace(PLAIN, speculation=Speculation(3, 0.5), noise=Noise(token_sigma=0.1))
    first, again = timeline(script, 64, b"p", index=0), timeline(script, 64, b"p", index=1)
    other = timeline(script, 64, b"q", index=0)
    assert first.accepted == again.accepted != other.accepted
    assert first.due_s != again.due_s
    assert first == timeline(script, 64, b"p", index=0)


@pytest.mark.parametrize(
    "noise",
    [
        Noise(token_sigma=0.3),
        Noise(request_sigma=0.1),
        Noise(ar1_sigma=0.1, ar1_step_s=0.5),
        Noise(token_sigma=0.2, request_sigma=0.05, ar1_sigma=0.05),
    ],
    ids=["tokens", "requests", "slow", "all"],
)
def test_noise_leaves_the_mean_tpot(noise: Noise):
    script = replace(PLAIN, noise=noise)
    drift = Drift(noise)
    ages = np.arange(800) * 2.6
    tpots = [timeline(script, 128, index=i, age_s=age, drift=drift).tpot_s for i, age in enumerate(ages)]
    assert np.mean(tpots) == pytest.approx(0.02, rel=0.02)
    assert np.std(tpots) > 0


def test_stalls_come_as_often_and_as_long_as_asked():
    noise = Noise(stall_probability=0.01, stall_s=0.5)
    times = timeline(replace(PLAIN, noise=noise), 40_000)
    late = np.diff(times.due_s) - 0.02
    assert np.mean(late > 1e-9) == pytest.approx(0.01, rel=0.2)
    assert late.sum() / 40_000 == pytest.approx(0.005, rel=0.2)


def test_linear_drift():
    noise = Noise(drift_per_s=0.01)
    young = timeline(replace(PLAIN, noise=noise), 10, age_s=0)
    old = timeline(replace(PLAIN, noise=noise), 10, age_s=100)
    assert old.tpot_s / young.tpot_s == pytest.approx(2.0, rel=0.01)


def test_servers_that_share_a_drift_seed_drift_together():
    ages = np.linspace(0, 50, 200)
    one = Drift(Noise(ar1_sigma=0.1, seed=1, drift_seed=7)).factor(ages)
    two = Drift(Noise(ar1_sigma=0.1, seed=2, drift_seed=7)).factor(ages)
    three = Drift(Noise(ar1_sigma=0.1, seed=2)).factor(ages)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)


def test_slow_drift_is_correlated_and_has_its_spread():
    path = np.log(Drift(Noise(ar1_sigma=0.1, ar1_rho=0.9, ar1_step_s=1.0)).factor(np.arange(20_000.0)))
    assert path.std() == pytest.approx(0.1, rel=0.1)
    assert np.corrcoef(path[:-1], path[1:])[0, 1] == pytest.approx(0.9, abs=0.02)
