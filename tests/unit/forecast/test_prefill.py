"""What a prompt token takes: from a run's times to first token, or from the cost of large steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.cost.hardware import hardware
from breakeven.cost.modelled import Modelled
from breakeven.cost.presets import preset
from breakeven.forecast.prefill import prefill_given, prefill_of_cost, prefill_of_run
from breakeven.trace.meta import Schedule
from breakeven.trace.records import RequestTrace
from tests.unit.forecast.served import a_run, served

EACH_S, FLAT_S = 50e-6, 0.02
LENGTHS = (100, 200, 400, 800, 1600, 3200)


def prompts(lengths: tuple[int, ...] = LENGTHS) -> list[RequestTrace]:
    """Each after the other, as a prefill of FLAT_S and EACH_S a token gives them."""
    return [served(f"{n}#0", n, FLAT_S + n * EACH_S, at_s=i) for i, n in enumerate(lengths)]


def test_the_slope_leaves_out_what_is_flat(tmp_path: Path):
    found = prefill_of_run(a_run(tmp_path / "r", prompts()))
    assert found is not None
    assert found.seconds_per_token == pytest.approx(EACH_S, rel=1e-6)
    assert found.words == (
        "50 µs per prompt token, the slope of the time to first token over 6 prompts of the record."
    )


def test_one_slow_prompt_does_not_move_it(tmp_path: Path):
    slow = served("slow#0", 150, 2.0, at_s=20)
    found = prefill_of_run(a_run(tmp_path / "r", [*prompts(), slow]))
    assert found is not None and found.seconds_per_token == pytest.approx(EACH_S, rel=0.01)


def test_later_repeats_of_a_prompt_are_answered_by_a_cache(tmp_path: Path):
    cached = [served(f"{n}#{i}", n, FLAT_S, at_s=20 + i) for n in LENGTHS for i in (1, 2)]
    found = prefill_of_run(a_run(tmp_path / "r", [*cached, *prompts()]))
    assert found is not None and found.seconds_per_token == pytest.approx(EACH_S, rel=1e-6)


def test_cached_tokens_that_the_server_counts_are_left_out(tmp_path: Path):
    half = [
        served(
            f"{n}#0",
            n,
            FLAT_S + n // 2 * EACH_S,
            at_s=n,
            usage={
                "prompt_tokens": n,
                "completion_tokens": 24,
                "prompt_tokens_details": {"cached_tokens": n // 2},
            },
        )
        for n in LENGTHS
    ]
    found = prefill_of_run(a_run(tmp_path / "r", half))
    assert found is not None and found.seconds_per_token == pytest.approx(EACH_S, rel=1e-6)


@pytest.mark.parametrize("lengths", [(100, 200, 400), (100, 110, 120, 130, 140, 150)])
def test_few_or_like_prompts_give_a_median(lengths: tuple[int, ...], tmp_path: Path):
    found = prefill_of_run(a_run(tmp_path / "r", prompts(lengths)))
    assert found is not None and "median" in found.words
    ratios = sorted(FLAT_S / n + EACH_S for n in lengths)
    assert ratios[0] <= found.seconds_per_token <= ratios[-1]


def test_longer_prompts_that_take_no_longer_give_a_median(tmp_path: Path):
    flat = [served(f"{n}#0", n, FLAT_S, at_s=n) for n in LENGTHS]
    found = prefill_of_run(a_run(tmp_path / "r", flat))
    assert found is not None and "median" in found.words and found.seconds_per_token > 0


@pytest.mark.parametrize("schedule", [Schedule("closed", concurrency=2), Schedule("open", rate_per_s=1.0)])
def test_prompts_that_wait_for_others_tell_nothing(schedule: Schedule, tmp_path: Path):
    assert prefill_of_run(a_run(tmp_path / "r", prompts(), schedule=schedule)) is None


def test_a_server_that_counts_no_prompts_tells_nothing(tmp_path: Path):
    uncounted = [served(f"{i}#0", None, FLAT_S, at_s=i) for i in range(6)]
    assert prefill_of_run(a_run(tmp_path / "r", uncounted)) is None


def test_from_the_cost_of_large_steps():
    """A dense model's prefill is arithmetic: 2 operations a parameter, at the efficiency that is modelled."""
    cost = Modelled(preset("llama-3.1-8b"), hardware("h100-sxm"))
    found = prefill_of_cost(cost)
    assert found.seconds_per_token == pytest.approx(21.0e-6, rel=0.02)
    assert "modelled step" in found.words and "--prefill-ms" in found.words


def test_as_given():
    assert prefill_given(0.5).seconds_per_token == pytest.approx(5e-4)
    assert prefill_given(0.5).words == "500 µs per prompt token, as given."
