"""The vectorised interval against loops that follow its definition word by word."""

import math
import random
from statistics import fmean, variance

import numpy as np
import pytest

from breakeven.compare.bootstrap import interval, take_apart
from breakeven.compare.student import t_quantile, z_quantile

RESAMPLES = 20_000


def by_loops(rows: list[list[float]], alpha: float, rng: random.Random) -> tuple[float, float, float]:
    """(estimate, low, high) on the log scale; no gaps, at least 2 prompts and 2 repeats."""
    n, repeats = len(rows), len(rows[0])
    prompt_means = [fmean(row) for row in rows]
    repeat_means = [fmean(rows[i][j] for i in range(n)) for j in range(repeats)]
    estimate = fmean(prompt_means)
    single = sum(
        (rows[i][j] - prompt_means[i] - repeat_means[j] + estimate) ** 2
        for i in range(n)
        for j in range(repeats)
    )
    v_prompts, v_repeats = variance(prompt_means) / n, variance(repeat_means) / repeats
    v_pairs = single / ((n - 1) * (repeats - 1)) / (n * repeats)
    spread = max(v_prompts, v_repeats, v_pairs, v_prompts + v_repeats - v_pairs)
    scale = math.sqrt(spread / (v_prompts + v_repeats))
    deviations = []
    for _ in range(RESAMPLES):
        chosen = fmean(rng.choices(prompt_means, k=n - 1)) - estimate
        weights = [rng.gauss(0, 1) for _ in range(repeats)]
        shaken = sum(w * (m - estimate) for w, m in zip(weights, repeat_means, strict=True))
        deviations.append(scale * (chosen + shaken / math.sqrt(repeats * (repeats - 1))))
    deviations.sort()
    tail = max(alpha / 2, 0.005)
    dof = (v_prompts + v_repeats) ** 2 / (v_prompts**2 / (n - 1) + v_repeats**2 / (repeats - 1))
    student = t_quantile(alpha / 2, max(1.0, math.floor(10 * dof) / 10))
    stretch, shortest = student / z_quantile(tail), student * math.sqrt(spread)
    low = min(deviations[int(tail * RESAMPLES)] * stretch, -shortest)
    high = max(deviations[int((1 - tail) * RESAMPLES)] * stretch, shortest)
    return estimate, estimate + low, estimate + high


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 6, 0.002])
@pytest.mark.parametrize(
    ("n", "repeats", "skewed"), [(3, 2, False), (8, 3, False), (8, 3, True), (12, 5, True)]
)
def test_agrees_with_loops(n: int, repeats: int, skewed: bool, alpha: float):
    rng = np.random.default_rng(n)
    rows = rng.normal(0.05, 0.02, (n, 1)) + rng.normal(0, 0.03, (n, repeats)) + rng.normal(0, 0.01, repeats)
    if skewed:
        rows[0] += 0.5
    estimate, low, high = by_loops(rows.tolist(), alpha, random.Random(1))
    found = interval(rows, alpha, resamples=RESAMPLES)
    half = (high - low) / 2
    assert math.log(found.estimate) == pytest.approx(estimate, abs=1e-12)
    assert math.log(found.low) == pytest.approx(low, abs=0.06 * half)
    assert math.log(found.high) == pytest.approx(high, abs=0.06 * half)


def test_gaps_leave_the_parts_of_full_repeats_alone():
    """A repeat that only one of the prompts has adds to that prompt's mean by its own weight."""
    rows = np.array([[0.1, 0.3, 0.5], [0.2, 0.4, np.nan]])
    parts = take_apart(rows)
    assert parts.estimate == pytest.approx((0.3 + 0.3) / 2)
    expected = [(-0.2 / 3 - 0.1 / 2) / 2, (0.0 / 3 + 0.1 / 2) / 2, (0.2 / 3) / 2]
    assert parts.by_repeat == pytest.approx(expected)
    assert parts.by_repeat.sum() == pytest.approx(0, abs=1e-12)
