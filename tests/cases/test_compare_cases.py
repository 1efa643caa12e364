"""The rows of cases.csv with area `compare`, one test each, named by the row's id."""

import csv
import re
from pathlib import Path

import pytest

from breakeven.compare.comparison import compare_traces
from breakeven.compare.confounders import confounders
from breakeven.compare.window import smallest_within_noise
from breakeven.verdict import judge
from tests.cases.builders import prose, reply, run

CASES = Path(__file__).parent / "cases.csv"


def one_reply_each(n: int, **fields):
    return [reply(f"p{i}", tpot_s=0.02 * (1 + i % 5 / 500), **fields) for i in range(n)]


def test_case_21_truncated_in_reasoning_on_one_side_only():
    baseline = one_reply_each(100)
    cut = [
        reply(f"p{i}", reasoning=prose(i), finish_reason="length", max_tokens=512, tpot_s=0.01)
        for i in range(22)
    ]
    found = compare_traces(baseline, cut + baseline[22:], temperature=0)
    assert (found.baseline.truncated_in_reasoning, found.candidate.truncated_in_reasoning) == (0, 22)
    judged = judge(found)
    assert judged.outcome == "refused"
    assert "22.0 %" in judged.reason and "ended inside reasoning" in judged.reason
    assert judged.next_command == "breakeven trial … --max-tokens 1024"
    assert any("22 of 100 requests (22.0 %) ended inside reasoning" in warning for warning in found.warnings)


@pytest.mark.parametrize("fields", [{"text": "ha ho" + " ha ho" * 100}, {"ids": (5, *(11, 12) * 60, 2)}])
def test_case_22_a_two_token_loop_is_degenerate(fields):
    baseline = run(50)
    found = compare_traces(baseline, run(70, seed=1, **fields), temperature=0)
    assert (found.baseline.degenerate, found.candidate.degenerate) == (0, 24)
    assert any("24 of 24 requests end in a short loop" in warning for warning in found.warnings)
    judged = judge(found)
    assert judged.outcome == "refused"
    assert "neither speed nor acceptance is that of real text" in judged.reason


def test_case_23_greedy_outputs_that_differ():
    baseline = run(50, tokens=40)
    other = [
        reply(t.prompt_id, t.repeat, tpot_s=0.016, tokens=30, text=t.text[:17] + "…") for t in baseline[:6]
    ]
    found = compare_traces(baseline, other + run(62.5, tokens=40, seed=1)[6:], temperature=0)
    assert (found.lossless.identical, found.lossless.compared) == (18, 24)
    first = found.lossless.first_divergence
    assert first is not None and (first.unit, first.position) == ("character", 17)
    assert any("differ in 6 of 24 pairs" in warning for warning in found.warnings)
    assert found.speedup is not None
    assert found.speedup.estimate == pytest.approx(1.25, rel=0.01), "per token, whatever the lengths"
    assert judge(found).outcome == "faster"


def test_case_24_two_runs_get_a_paired_interval():
    speeds = [20 + 3 * i for i in range(24)]
    found = compare_traces(
        run(speeds, repeats=1), run([speed * 1.06 for speed in speeds], repeats=1, seed=1), temperature=0
    )
    assert found.speedup is not None
    assert 1.05 < found.speedup.low < found.speedup.estimate < found.speedup.high < 1.07
    assert len(found.prompts) == 24
    judged = judge(found)
    assert judged.outcome == "faster"
    assert "95.0 % interval" in judged.reason and not re.search(r"p9\d", judged.reason)


def test_case_25_the_warm_up_is_no_part_of_it():
    """A measure keeps no warm-up request; the batches that follow it run at 74 and 88 against 290."""
    found = compare_traces(run(290, repeats=2), run([74, 88] * 4, repeats=2, seed=1), temperature=0)
    assert found.speedup is not None and found.speedup.high < 0.4
    judged = judge(found)
    assert judged.outcome == "slower" and "−72." in judged.reason


def test_case_26_one_verdict_for_each_pair_of_runs():
    tp1 = compare_traces(run(21), run(30, seed=1), temperature=0)
    tp4 = compare_traces(run(61), run(59, seed=1), temperature=0)
    assert judge(tp1).outcome == "faster" and "+42." in judge(tp1).reason
    assert judge(tp4).outcome == "slower" and "−3." in judge(tp4).reason


def test_case_27_smallest_window_within_noise_of_the_best():
    by_concurrency = {1: {2: 1.26, 4: 1.27, 6: 1.09}, 8: {2: 1.05, 4: 1.20, 6: 1.02}}
    chosen = {}
    for concurrency, windows in by_concurrency.items():
        found = {
            window: compare_traces(run(50), run(50 * speedup, noise=0.02, seed=window), temperature=0).speedup
            for window, speedup in windows.items()
        }
        chosen[concurrency] = smallest_within_noise({w: speedup for w, speedup in found.items() if speedup})
    assert chosen == {1: 2, 8: 4}


def test_case_28_prefix_cache_and_ttft_are_confounders():
    baseline = run(50, ttft_s=0.05, cached_tokens=80)
    candidate = run(60, ttft_s=0.12, cached_tokens=10, seed=1)
    found = confounders(baseline, candidate)
    assert any("prefix cache: 80.0 % → 10.0 %" in sentence for sentence in found)
    assert any("time to first token: median 50.0 ms → 120.0 ms" in sentence for sentence in found)
    assert judge(compare_traces(baseline, candidate, temperature=0)).outcome == "faster"


def test_every_row_of_the_area_has_its_test():
    with CASES.open(newline="") as file:
        rows = {int(row["id"]) for row in csv.DictReader(file) if row["area"] == "compare"}
    tests = {int(found.group(1)) for name in globals() if (found := re.match(r"test_case_(\d+)_", name))}
    assert rows == tests and rows
