from dataclasses import replace

import numpy as np
import pytest

from benchmarks.power import SHARED, Simulation, run_rule
from breakeven.compare.comparison import compare_traces
from breakeven.compare.sequential import StoppingRule
from breakeven.errors import UsageError
from tests.cases.builders import run


def decide(candidate, repeats: int, cap: int = 12):
    rule = StoppingRule(cap=cap)
    baseline = run(50, repeats=repeats, noise=0.005)
    return rule.decide(compare_traces(baseline, candidate, temperature=0, alpha=rule.alpha_per_look), repeats)


@pytest.mark.parametrize(
    ("cap", "looks"),
    [
        (2, (2,)),
        (3, (2, 3)),
        (7, (2, 3, 4, 6, 7)),
        (12, (2, 3, 4, 6, 8, 12)),
        (20, (2, 3, 4, 6, 8, 12, 16, 20)),
    ],
)
def test_looks(cap: int, looks: tuple[int, ...]):
    assert StoppingRule(cap=cap).looks == looks


def test_the_looks_share_the_error():
    rule = StoppingRule(alpha=0.1)
    assert rule.alpha_per_look * len(rule.looks) == pytest.approx(0.1)


def test_a_cap_below_two_is_refused():
    with pytest.raises(UsageError, match="--repeats 1"):
        StoppingRule(cap=1)


@pytest.mark.parametrize(("speed", "word"), [(60, "faster"), (42, "slower"), (50, "same")])
def test_a_decided_trial_stops(speed: float, word: str):
    found = decide(run(speed, repeats=4, seed=1), 4)
    assert found.stop and word in found.reason and "4 repeats" in found.reason


def test_an_undecided_trial_goes_on_to_its_cap():
    noisy = run(51, repeats=2, noise=0.05, seed=1)
    assert not decide(noisy, 2).stop
    found = decide(noisy, 2, cap=2)
    assert found.stop and "most allowed" in found.reason


def test_between_looks_it_does_not_look():
    found = decide(run(80, repeats=5, seed=1), 5)
    assert not found.stop and "after 6 repeats" in found.reason


def test_prompts_that_pull_apart_are_futile():
    categories = {"copy": 1.3, "math": 0.75}
    candidate = [
        trace
        for category, factor in categories.items()
        for trace in _category(run(50 * factor, prompts=4, repeats=3, seed=1), category)
    ]
    baseline = [t for c in categories for t in _category(run(50, prompts=4, repeats=3), c)]
    rule = StoppingRule()
    found = rule.decide(compare_traces(baseline, candidate, temperature=0, alpha=rule.alpha_per_look), 3)
    assert found.stop
    for part in ("depends on the prompt", "add prompts", "faster on copy (+29.", "slower on math (−25"):
        assert part in found.reason


def test_nothing_paired_goes_on_and_ends_at_the_cap():
    empty = compare_traces([], [], temperature=0)
    assert not StoppingRule().decide(empty, 2).stop
    assert StoppingRule(cap=2).decide(empty, 2).stop


@pytest.mark.parametrize("concurrency", [1, 8])
def test_of_equal_sides_few_are_called_different(concurrency: int):
    """200 A/A trials under noise, drift and stalls; benchmarks/power.py runs 2,000."""
    simulation, rng = Simulation(SHARED, concurrency), np.random.default_rng(5)
    found = [run_rule(simulation.log_ratios(rng), StoppingRule())[0] for _ in range(200)]
    assert sum(which in ("faster", "slower") for which in found) <= 10


def test_a_true_effect_is_found_and_never_turned_over():
    simulation, rng = Simulation(SHARED, 1), np.random.default_rng(6)
    found = [
        run_rule(simulation.log_ratios(rng, effect=0.095, spread=0.03), StoppingRule()) for _ in range(60)
    ]
    assert sum(which == "faster" for which, _ in found) >= 54
    assert not any(which in ("slower", "same") for which, _ in found)
    assert np.median([repeats for _, repeats in found]) <= 4


def _category(traces, category: str):
    return [replace(t, prompt_id=f"{category}-{t.prompt_id}", category=category) for t in traces]
