import dataclasses
import time

import numpy as np
import pytest

from breakeven.compare.comparison import compare_traces
from breakeven.errors import UsageError
from tests.cases.builders import reply, run


def test_the_speedup_is_that_of_the_speeds():
    found = compare_traces(run(50), run(60, seed=1), temperature=0)
    assert found.speedup is not None
    assert found.speedup.estimate == pytest.approx(1.2, rel=0.01)
    assert found.speedup.low < 1.2 < found.speedup.high
    assert (found.repeats, len(found.prompts), found.confidence) == (3, 8, 0.95)


def test_prompts_count_alike_whatever_their_speed():
    found = compare_traces(run([10, 100], noise=0), run([20, 100], noise=0), temperature=0)
    assert found.speedup is not None
    assert found.speedup.estimate == pytest.approx(2**0.5, rel=1e-6)
    assert [round(p.speedup.estimate, 3) for p in found.prompts] == [2, 1]
    assert found.prompts[0].baseline_tpot_s == pytest.approx(0.1)
    assert found.prompts[0].candidate_tpot_s == pytest.approx(0.05)


def test_outputs_of_unlike_length_are_compared_per_token():
    found = compare_traces(run(50, noise=0, tokens=200), run(50, noise=0, tokens=20), temperature=0)
    assert found.speedup is not None and found.speedup.estimate == pytest.approx(1, rel=1e-6)


def test_categories():
    def both(speed: float, seed: int):
        return [
            *run([50] * 4, seed=seed, category="math"),
            *_renamed(run([speed] * 4, seed=seed, category="copy")),
        ]

    found = compare_traces(both(50, 0), both(75, 1), temperature=0)
    assert found.by_category["math"].estimate == pytest.approx(1, abs=0.01)
    assert found.by_category["copy"].low > 1.4
    assert found.by_category["copy"].high < 1.6


def test_sides_are_counted_and_bad_replies_left_out():
    baseline = run(prompts=10, repeats=2)
    candidate = [
        reply("p0", 0, error="cut off"),
        reply("p1", 0, tokens=1),
        reply("p2", 0, reasoning="so " * 30, finish_reason="length", max_tokens=32),
        *run(prompts=10, repeats=2)[3:],
    ]
    found = compare_traces(baseline, candidate, temperature=0)
    side = found.candidate
    assert (side.requests, side.errors, side.without_tpot) == (20, 1, 1)
    assert side.untimed == {"one token has none after it": 1}
    assert (side.truncated_in_reasoning, side.degenerate, side.max_tokens) == (1, 1, 256)
    assert {prompt.id: prompt.pairs for prompt in found.prompts if prompt.pairs < 2} == {"p0": 1, "p1": 1}
    text = " ".join(found.warnings)
    for part in ("1 of 20 requests failed", "5.0 %", "short loop", "no TPOT"):
        assert part in text


def test_nothing_paired():
    found = compare_traces(run(prompts=2), [reply("elsewhere")], temperature=0)
    assert found.speedup is None
    assert (found.prompts, found.by_category, found.repeats) == ((), {}, 0)
    assert found.lossless.reason


def test_no_replies_at_all():
    found = compare_traces([], [], temperature=None)
    assert found.speedup is None and found.baseline.requests == 0
    assert found.baseline.max_tokens is None


def test_wide_bounds_of_a_tpot_are_a_warning():
    found = compare_traces(run(bundles=True, tokens=8), run(bundles=True, tokens=8), temperature=0)
    assert any("bounds wider than the floor" in warning for warning in found.warnings)
    assert not any("bounds" in warning for warning in compare_traces(run(), run(), temperature=0).warnings)


def test_one_prompt_and_one_repeat_say_what_they_cannot_tell():
    assert any("p0 only" in w for w in compare_traces(run(prompts=1), run(prompts=1), temperature=0).warnings)
    assert any(
        "one repeat" in w for w in compare_traces(run(repeats=1), run(repeats=1), temperature=0).warnings
    )


def test_drift_is_a_warning_with_its_size():
    def slowing(_: int, repeat: int) -> float:
        return 1 - 0.05 * repeat

    found = compare_traces(run(speed_of=slowing), run(60, speed_of=slowing, seed=1), temperature=0)
    assert found.drift.significant
    assert any("drifted" in warning and "−" in warning for warning in found.warnings)


def test_a_look_has_its_own_level():
    wide = compare_traces(run(), run(seed=1), temperature=0, alpha=0.002)
    usual = compare_traces(run(), run(seed=1), temperature=0)
    assert wide.confidence == pytest.approx(0.998)
    assert wide.speedup is not None and usual.speedup is not None
    assert wide.speedup.high > usual.speedup.high


@pytest.mark.parametrize(
    ("option", "word"),
    [({"floor": -0.1}, "--floor"), ({"confidence": 1.0}, "--confidence"), ({"alpha": 0}, "conf")],
)
def test_levels_out_of_range(option: dict[str, float], word: str):
    with pytest.raises(UsageError, match=word):
        compare_traces(run(), run(), temperature=0, **option)


def test_same_runs_same_comparison():
    assert compare_traces(run(), run(seed=1), temperature=0) == compare_traces(
        run(), run(seed=1), temperature=0
    )


def test_swapping_the_sides_turns_the_ratio_over():
    a, b = run(50, repeats=1, prompts=6), run(55, repeats=1, prompts=6, seed=1)
    there, back = compare_traces(a, b, temperature=0), compare_traces(b, a, temperature=0)
    assert there.speedup is not None and back.speedup is not None
    assert there.speedup.estimate == pytest.approx(1 / back.speedup.estimate)


def test_eight_prompts_by_eight_repeats_take_milliseconds():
    baseline, candidate = run(repeats=8), run(repeats=8, seed=1)
    compare_traces(baseline, candidate, temperature=0)
    started = time.perf_counter()
    compare_traces(baseline, candidate, temperature=0)
    assert time.perf_counter() - started < 0.5


def test_estimates_hold_no_numpy_types():
    found = compare_traces(run(), run(seed=1), temperature=0)
    assert found.speedup is not None
    values = [*dataclasses.astuple(found.speedup), *dataclasses.astuple(found.prompts[0].speedup)]
    assert not any(isinstance(value, np.generic) for value in values)
    assert all(type(prompt.baseline_tpot_s) is float for prompt in found.prompts)


def _renamed(traces):
    return [dataclasses.replace(trace, prompt_id=f"x{trace.prompt_id}") for trace in traces]


def test_requests_that_one_side_was_not_asked_are_told():
    found = compare_traces(run(50), [t for t in run(60) if t.prompt_id in ("p0", "p1")], temperature=0)
    assert len(found.prompts) == 2
    assert "baseline: 18 of 24 requests were not asked of the other side: they are left out" in found.warnings
    assert not any("not asked" in warning for warning in compare_traces(run(), run(), temperature=0).warnings)


def test_failures_are_told_with_a_reason():
    failed = [reply(trace.prompt_id, trace.repeat, error="context is full") for trace in run()]
    found = compare_traces(run(), failed, temperature=0)
    assert "candidate: 24 of 24 requests failed, the first of them because: context is full" in found.warnings


@pytest.mark.parametrize("confidence", [0.95, 0.999, 0.99999])
def test_an_interval_too_wide_for_a_float_is_still_one(confidence: float):
    found = compare_traces(
        run([1e3, 1e-3], noise=0, repeats=2), run([1e-3, 1e3], noise=0.1, repeats=2), temperature=0,
        confidence=confidence,
    )  # fmt: skip
    assert found.speedup is not None
    for interval in (found.speedup, *(prompt.speedup for prompt in found.prompts)):
        assert 0 < interval.low <= interval.estimate <= interval.high < float("inf")
