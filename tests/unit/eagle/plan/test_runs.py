"""Published training runs: the file, and what is asked of it."""

from __future__ import annotations

import pytest

from breakeven.eagle.plan.runs import TrainingRun, heads_of, training_runs, with_as_few
from breakeven.forecast.published import published

RUNS = training_runs()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.model}, {run.head or run.samples}")
def test_each_run_has_a_source_and_figures_that_can_be(run: TrainingRun):
    assert "http" in run.source or "arXiv" in run.source
    for low, high in ((run.gpu_hours_low, run.gpu_hours_high), (run.acceptance_low, run.acceptance_high)):
        assert low is None or high is None or 0 < low <= high
    assert (run.acceptance_low is None) == (run.acceptance_high is None) == (run.workloads is None)
    assert run.acceptance_high is None or 1 < run.acceptance_high <= (run.k or 16) + 1
    assert run.samples is None or run.samples >= 1000
    assert any(value is not None for value in (run.samples, run.gpu_hours_low, run.gpu_hours_high))


def test_a_head_stands_there_once():
    heads = [run.head for run in RUNS if run.head]
    assert len(set(heads)) == len(heads)


def lengths_of(head: str) -> list[float]:
    """That its card has, in the file of acceptance lengths."""
    return [one.acceptance_length for one in published("eagle3") if f"model card {head}," in one.source]


@pytest.mark.parametrize("run", [run for run in RUNS if run.head and lengths_of(run.head)], ids=str)
def test_lengths_of_a_head_that_is_published_elsewhere_too_are_the_same(run: TrainingRun):
    lengths = lengths_of(run.head or "")
    assert (run.acceptance_low, run.acceptance_high) == (min(lengths), max(lengths))
    assert {one.k for one in published("eagle3") if f"model card {run.head}," in one.source} == {run.k}


def test_kimi_heads_have_their_lengths_in_both_files():
    heads = {run.head for run in RUNS if run.head and lengths_of(run.head)}
    assert heads == {
        "lightseekorg/kimi-k2.5-eagle3",
        "AQ-MedAI/Kimi-K2-Instruct-eagle3",
        "AQ-MedAI/Kimi-K26-eagle3",
        "AQ-MedAI/Kimi-K2.7-Code-eagle3",
    }
    (kimi,) = [run for run in RUNS if run.head == "lightseekorg/kimi-k2.5-eagle3"]
    assert kimi.tokens == 10_000 * (kimi.samples or 0)


def test_heads_of_a_target():
    assert heads_of("kimi-k2.5")[0] == "lightseekorg/kimi-k2.5-eagle3"
    assert heads_of("llama-3.1-8b") == ()


@pytest.mark.parametrize(
    ("samples", "model"),
    [(100, None), (5000, "qwen3.5-moe"), (299_999, "qwen2.5-7b"), (500_000, "kimi-k2.7-code")],
)
def test_the_run_with_as_few_samples(samples: int, model: str | None):
    run = with_as_few(samples)
    assert (run.model if run else None) == model
