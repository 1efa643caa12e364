import pytest

from breakeven.compare.drift import drift
from breakeven.compare.pairs import replies
from tests.cases.builders import reply, run


def find(traces):
    return drift(replies(traces, "baseline"), floor=0.02, alpha=0.05)


def test_a_machine_that_slows_down():
    found = find(run(repeats=4, speed_of=lambda _, repeat: 1 - 0.03 * repeat))
    assert found.significant and found.ratio is not None
    assert found.ratio.estimate == pytest.approx(0.91, abs=0.01)


def test_a_steady_machine():
    found = find(run(repeats=4))
    assert not found.significant and found.ratio is not None
    assert found.ratio.low < 1 < found.ratio.high


def test_a_drift_below_the_floor_is_not_significant():
    found = find(run(repeats=2, noise=0.0001, speed_of=lambda _, repeat: 1 + 0.01 * repeat))
    assert found.ratio is not None and found.ratio.low > 1
    assert not found.significant


def test_one_block_or_one_prompt_tells_nothing():
    assert find(run(repeats=1)).ratio is None
    assert find(run(repeats=4, prompts=1)).ratio is None
    assert find([]).ratio is None


def test_prompts_of_unlike_speed_are_paired():
    found = find([reply(f"p{i}", r, tpot_s=0.01 * (i + 1)) for r in range(2) for i in range(5)])
    assert found.ratio is not None and found.ratio.estimate == pytest.approx(1, rel=1e-6)
