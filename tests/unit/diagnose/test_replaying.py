"""What the configured drafter gives on a run's own tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.cost.drafting import drafting_cost
from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.diagnose.evidence import Drafting
from breakeven.diagnose.replaying import replayed
from breakeven.errors import UsageError
from breakeven.replay.run import replay_source
from breakeven.replay.sources import open_source
from breakeven.trace.run import Run, ServerInfo, load_run
from tests.unit.diagnose.compared import DENSE, PLAIN_S
from tests.unit.replay.sources.test_run_source import a_run, recorded

TEXT = (5, 6, 7, 8, 9, 10, 11, 5, 6, 7, 8, 9, 12, 11, 5, 6, 7, 13, 14, 9, 10, 11, 5, 6, 20, 21, 22, 23)
"""Runs of two to five tokens come again."""


def run_of(folder: Path, engine: str | None = "vllm") -> Run:
    outputs = (TEXT, TEXT[::-1], TEXT[3:] + TEXT[:9])
    traces = [recorded(i, *output) for i, output in enumerate(outputs)]
    return load_run(a_run(folder / "r", *traces, server=ServerInfo(engine)))


def test_the_drafter_as_it_is_set(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    found = replayed(run, Drafting("ngram", 4, 2, 4))
    direct = replay_source(
        open_source(run.path), "vllm-ngram", {"k": 4, "min_n": 2, "max_n": 4}, jobs=1
    ).total.counters
    assert found and found.as_set.acceptance.counters == direct and direct.drafts
    assert (found.as_set.k, found.as_set.min_n, found.as_set.max_n) == (4, 2, 4)
    assert found.as_set.cost_per_token is None


def test_one_end_of_the_lookup_is_both(tmp_path: Path) -> None:
    found = replayed(run_of(tmp_path), Drafting("ngram", 4, None, 4))
    assert found and (found.as_set.min_n, found.as_set.max_n) == (4, 4)
    shorter = next(one for one in found.others if (one.k, one.min_n, one.max_n) == (4, 2, 4))
    assert (shorter.acceptance.counters.drafts or 0) > (found.as_set.acceptance.counters.drafts or 0)


def test_others_differ_in_the_window_or_in_the_n_range_and_each_is_there_once(tmp_path: Path) -> None:
    found = replayed(run_of(tmp_path), Drafting("ngram", 4, 2, 4))
    assert found
    names = [(one.k, one.min_n, one.max_n) for one in found.others]
    assert len(names) == len(set(names)) and (4, 2, 4) not in names
    assert {k for k, *n in names if n == [2, 4]} == {1, 2, 3, 5, 8, 12}
    assert all((low, high) == (2, 4) or k == 4 for k, low, high in names)
    assert {(low, high) for k, low, high in names if k == 4} == {(1, 3), (2, 3), (3, 5)}


def test_a_token_costs_what_its_steps_cost(tmp_path: Path) -> None:
    found = replayed(run_of(tmp_path), Drafting("ngram", 4, 2, 4), DENSE)
    drafting = drafting_cost("vllm", "ngram")
    assert found
    for one in (found.as_set, *found.others):
        total = 0.0
        for drafted, _, steps in one.acceptance.histogram.tolist():
            own_s = drafting.step_s.estimate + (drafting.drafted_step_s.estimate if drafted else 0)
            total += steps * (DENSE.relative(Step(1 + drafted), PLAIN_STEP).estimate + own_s / PLAIN_S)
        assert one.cost_per_token == pytest.approx(total / one.acceptance.emitted_tokens)


def test_more_sequences_cost_otherwise(tmp_path: Path) -> None:
    alone, among = (replayed(run_of(tmp_path / str(s)), Drafting("ngram", 4, 2, 4), DENSE, s) for s in (1, 4))
    assert alone and among
    assert among.as_set.cost_per_token != pytest.approx(alone.as_set.cost_per_token)


@pytest.mark.parametrize(
    ("engine", "method"),
    [("vllm", "suffix"), ("llama.cpp", "ngram-simple"), ("llama.cpp", "ngram-map-k"), ("sglang", "ngram")],
)
def test_other_engines_and_methods(engine: str, method: str, tmp_path: Path) -> None:
    n = (None, None) if engine == "sglang" or method == "suffix" else (3, 3)
    found = replayed(run_of(tmp_path, engine), Drafting(method, 4, *n), DENSE)
    assert found and found.as_set.k == 4 and found.others and found.as_set.cost_per_token


@pytest.mark.parametrize(
    ("engine", "method"), [("vllm", "eagle3"), ("vllm", "ngram_gpu"), (None, "ngram"), ("tgi", "ngram")]
)
def test_what_cannot_be_replayed_is_not(engine: str | None, method: str, tmp_path: Path) -> None:
    assert replayed(run_of(tmp_path, engine), Drafting(method, 4)) is None


def test_a_run_without_ids_says_what_to_type(tmp_path: Path) -> None:
    path = a_run(tmp_path / "r", recorded(0, output_token_ids=None))
    with pytest.raises(UsageError, match="measure again with  --token-ids"):
        replayed(load_run(path), Drafting("ngram", 4, 2, 4))
