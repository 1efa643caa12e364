import math

import numpy as np
import pytest

from breakeven.compare.student import t_quantile
from breakeven.compare.within import PairNoise, pair_noise, within_interval


def test_noise_is_pooled_over_prompts():
    noise = pair_noise(np.array([[1.0, 3.0, np.nan], [5.0, 5.0, 8.0], [7.0, np.nan, np.nan]]))
    assert noise.dof == 3
    assert noise.variance == pytest.approx((2 + 6) / 3)


def test_a_prompt_with_repeats():
    found = within_interval(np.array([[0.1, 0.2]]), PairNoise(0.01, 8), 0.05)
    half = t_quantile(0.025, 8) * 0.1 / math.sqrt(2)
    assert math.log(found.estimate) == pytest.approx(0.15)
    assert math.log(found.high / found.estimate) == pytest.approx(half)
    assert math.log(found.estimate / found.low) == pytest.approx(half)


@pytest.mark.parametrize("noise", [PairNoise(0.01, 8), PairNoise(0.0, 0)])
def test_one_pair_shows_its_estimate_only(noise: PairNoise):
    found = within_interval(np.array([[0.1, np.nan]]), noise, 0.05)
    assert found.low == found.estimate == found.high


def test_a_category_is_its_prompts_geometric_mean():
    found = within_interval(np.log([[2.0, 2.0], [0.5, 0.5]]), PairNoise(0.0, 2), 0.05)
    assert found.estimate == pytest.approx(1)
