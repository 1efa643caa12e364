from dataclasses import replace
from statistics import median

import pytest

from breakeven.interval import Interval
from breakeven.report.plots import MAX_FOREST_ROWS, Sample, block_tpots, distribution, drift, forest
from tests.unit.report.builders import result, traces


def samples(*values: tuple[str, int, float]) -> list[Sample]:
    return [Sample(prompt, block, block, tpot_s) for prompt, block, tpot_s in values]


def test_forest_is_sorted_and_keeps_intervals_in_order():
    plot = forest(result().comparison)
    estimates = [row.estimate for row in plot.rows]
    assert estimates == sorted(estimates)
    assert all(0 <= row.low < row.estimate < row.high <= 100 for row in (*plot.rows, plot.total))
    assert plot.floor_low < plot.one < plot.floor_high
    assert plot.one == next(tick.position for tick in plot.ticks if tick.value == 1)
    assert {row.colour for row in plot.rows} == {number for _, number in plot.categories}


def test_forest_without_prompts_is_none():
    assert forest(replace(result().comparison, prompts=())) is None


def test_forest_of_many_prompts_keeps_the_extremes():
    comparison = result().comparison
    prompts = tuple(
        replace(comparison.prompts[0], id=str(n), speedup=Interval(1 + n / 100, 1 + n / 100, 1 + n / 100))
        for n in range(100)
    )
    plot = forest(replace(comparison, prompts=prompts))
    assert len(plot.rows) == MAX_FOREST_ROWS
    assert (plot.rows[0].label, plot.rows[-1].label, plot.left_out) == ("0", "99", 40)


def test_a_low_end_of_zero_does_not_break_the_axis():
    comparison = result().comparison
    prompts = (replace(comparison.prompts[0], speedup=Interval(1.0, 0.0, 2.0)),)
    plot = forest(replace(comparison, prompts=prompts, speedup=Interval(1.0, 0.0, 2.0)))
    assert plot.rows[0].low == -100


def test_distribution_places_every_reply():
    comparison = result().comparison
    a = samples(("coding", 0, 0.02), ("coding", 1, 0.03))
    b = samples(("coding", 0, 0.01))
    plot = distribution(comparison, a, b)
    strip = next(strip for strip in plot.strips if strip.label == "coding")
    assert len(strip.baseline) == 2 and len(strip.candidate) == 1
    assert strip.candidate[0] < strip.baseline[0] < strip.baseline[1]
    assert "median 25.00 ms (baseline), 10.00 ms (candidate)" in strip.text
    assert distribution(comparison, a, []) is None


def test_block_tpots_compare_like_with_like():
    values = samples(("a", 0, 0.01), ("b", 0, 0.04), ("a", 1, 0.01), ("b", 1, 0.04), ("c", 1, 9.0))
    assert block_tpots(values) == {0: pytest.approx(0.02), 1: pytest.approx(0.02)}
    assert block_tpots(samples(("a", 0, 0.01), ("b", 1, 0.01))) == {}
    assert block_tpots([]) == {}


def test_drift_rises_when_the_machine_slows_down():
    slowing = samples(*(("a", block, 0.02 * (1 + block / 100)) for block in range(5)))
    plot = drift(slowing, [])
    heights = [dot.y for dot in plot.baseline]
    assert heights == sorted(heights, reverse=True)
    assert heights[2] == pytest.approx(50)
    assert plot.candidate == ()
    assert "baseline: +4.0 % ms a token from the first block to the last" in plot.text


def test_noise_is_not_drawn_as_a_storm():
    calm = samples(("a", 0, 0.02), ("a", 1, 0.020002))
    assert all(abs(dot.y - 50) < 1 for dot in drift(calm, calm).baseline)


def test_one_block_shows_no_drift():
    assert drift(samples(("a", 0, 0.02)), samples(("a", 0, 0.02))) is None


def test_block_medians_of_real_traces():
    side = traces(4)[0]
    values = [Sample(one.prompt_id, one.repeat, one.block, 0.02 + one.block / 1e4) for one in side]
    blocks = block_tpots(values)
    assert median(blocks.values()) == pytest.approx(0.02015)
