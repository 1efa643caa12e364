import math

import pytest

from breakeven.compare.comparison import compare_traces
from breakeven.compare.projection import project
from tests.cases.builders import run


def spread(prompt: int, _: int) -> float:
    return 1.3 if prompt % 2 else 1 / 1.3


def shaken(prompt: int, repeat: int) -> float:
    """Noise that cancels over any two repeats."""
    return 1.1 if (prompt // 2 + repeat) % 2 else 1 / 1.1


def projected(speed: float, prompts: int = 8, speed_of=None):
    baseline = run(50, prompts=prompts, repeats=4)
    candidate = run(speed, prompts=prompts, repeats=4, seed=1, speed_of=speed_of)
    found = project(compare_traces(baseline, candidate, temperature=0))
    assert found is not None
    return found


def test_noise_of_repeats_can_be_averaged_out():
    found = projected(51.5, speed_of=shaken)
    assert found.half_at_best < 0.2 * found.half
    assert found.repeats_can_decide
    assert found.repeats_needed is not None and found.repeats_needed > 4


def test_spread_of_prompts_cannot():
    found = projected(51.5, speed_of=spread)
    assert found.half_at_best > 0.9 * found.half
    assert not found.repeats_can_decide and found.repeats_needed is None
    assert found.prompts_needed is not None and found.prompts_needed > 8


def test_needed_is_the_way_to_one_or_to_the_floor():
    clear, small = projected(60), projected(50.1)
    assert clear.needed == pytest.approx(math.log(1.2), abs=0.03)
    assert small.needed < math.log(1.02)


def test_one_prompt_varies_only_by_repeat():
    assert projected(51, prompts=1).half_at_best == 0


def test_nothing_paired():
    assert project(compare_traces([], [], temperature=0)) is None
