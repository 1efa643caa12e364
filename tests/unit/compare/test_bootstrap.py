import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.compare.bootstrap import interval, take_apart
from breakeven.compare.student import t_quantile


def table(n: int, repeats: int, seed: int = 0, mean: float = 0.05, noise: float = 0.03) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, noise, (n, repeats))


def test_estimate_is_the_geometric_mean_over_prompts():
    ratios = np.array([[2.0, 2.0], [0.5, 0.5], [3.0, 3.0]])
    assert interval(np.log(ratios), 0.05).estimate == pytest.approx(3 ** (1 / 3))


def test_a_prompt_with_gaps_weighs_as_much_as_one_without():
    log_ratios = np.log(np.array([[2.0, np.nan, np.nan], [1.0, 1.0, 1.0]]))
    assert interval(log_ratios, 0.05).estimate == pytest.approx(math.sqrt(2))


def test_one_repeat_is_no_shorter_than_the_t_interval():
    log_ratios = table(8, 1)
    found = interval(log_ratios, 0.05)
    half = t_quantile(0.025, 7) * log_ratios.std(ddof=1) / math.sqrt(8)
    assert math.log(found.high) >= log_ratios.mean() + half - 1e-9
    assert math.log(found.low) <= log_ratios.mean() - half + 1e-9
    assert math.log(found.high / found.low) < 2 * half * 1.15


def test_one_prompt_speaks_from_its_repeats():
    log_ratios = table(1, 6)
    found = interval(log_ratios, 0.05)
    half = t_quantile(0.025, 5) * log_ratios.std(ddof=1) / math.sqrt(6)
    assert math.log(found.high / found.low) / 2 == pytest.approx(half, rel=0.1)


def test_one_pair_has_no_spread():
    found = interval(np.array([[0.1]]), 0.05)
    assert found.low == pytest.approx(found.estimate) == pytest.approx(found.high)


def test_skew_reaches_the_side_of_the_outlying_prompt():
    log_ratios = np.array([[0.0], [0.0], [0.01], [-0.01], [0.0], [0.01], [-0.01], [0.8]])
    found = interval(log_ratios, 0.05)
    assert math.log(found.high / found.estimate) > 1.2 * math.log(found.estimate / found.low)


def test_a_repeat_that_is_off_as_a_whole_widens_the_interval():
    steady = table(16, 4, mean=0.0, noise=0.005)
    shaken = steady + np.array([0.03, -0.03, 0.03, -0.03])
    assert _half(shaken) > 4 * _half(steady)


def test_same_seed_same_interval():
    assert interval(table(8, 3), 0.05, seed=4) == interval(table(8, 3), 0.05, seed=4)
    assert interval(table(8, 3), 0.05, seed=4) != interval(table(8, 3), 0.05, seed=5)


def test_many_prompts_are_drawn_in_pieces():
    log_ratios = table(3000, 1)
    found = interval(log_ratios, 0.05)
    expected = 1.96 * 0.03 / math.sqrt(3000)
    assert math.log(found.high / found.low) / 2 == pytest.approx(expected, rel=0.08)


def test_variance_without_shared_noise_is_that_of_the_mean():
    rng = np.random.default_rng(3)
    parts = [take_apart(rng.normal(0, 1, (8, 4))) for _ in range(400)]
    both = [p.prompt_variance + p.repeat_variance - p.pair_variance for p in parts]
    assert np.mean(both) == pytest.approx(1 / 32, rel=0.1)


@pytest.mark.parametrize("shared", [0.0, 0.015])
@pytest.mark.parametrize(("n", "repeats"), [(4, 2), (8, 2), (8, 4), (16, 4)])
def test_coverage(n: int, repeats: int, shared: float):
    """Nominal 95 %: of 400 draws at least 90 % hold the truth, also if repeats are off as wholes."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        log_ratios = 0.02 * rng.standard_normal((n, 1)) + 0.03 * rng.standard_normal((n, repeats))
        found = interval(log_ratios + shared * rng.standard_normal((1, repeats)), 0.05, resamples=1000)
        held += found.low <= 1 <= found.high
    assert held / 400 >= 0.90


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.integers(1, 4).flatmap(
            lambda r: st.lists(
                st.lists(st.one_of(st.none(), st.floats(-2, 2)), min_size=r, max_size=r).filter(
                    lambda row: any(v is not None for v in row)
                ),
                min_size=n,
                max_size=n,
            )
        )
    )
)
@settings(max_examples=150, deadline=None)
def test_any_pattern_of_gaps_gives_an_ordered_interval(rows: list[list[float | None]]):
    log_ratios = np.array([[np.nan if v is None else v for v in row] for row in rows])
    found = interval(log_ratios, 0.05, resamples=200)
    assert 0 <= found.low <= found.estimate * (1 + 1e-12)
    assert found.estimate <= found.high * (1 + 1e-12)
    assert found.estimate == pytest.approx(math.exp(np.nanmean(log_ratios, axis=1).mean()))


def _half(log_ratios: np.ndarray) -> float:
    found = interval(log_ratios, 0.05)
    return math.log(found.high / found.low) / 2
