"""How many sequences a step has, and what their caches hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.diagnose.batch import context_of, context_tokens_of, sequences_of
from breakeven.diagnose.readings import Look, Readings
from breakeven.trace.run import Run
from tests.unit.diagnose.healthy import log
from tests.unit.explain.cases import kimi
from tests.unit.report.builders import run_on_disk, trace


def look(before: Load, after: Load) -> Readings:
    return Readings(look=Look(Page("vllm", None, before), Page("vllm", None, after), 30.0))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_on_disk(tmp_path / "run", [trace("a", "c", 0.01, 0)], {"ok": True, "reasons": []})


@pytest.mark.parametrize(
    ("running", "expected"),
    [((32, 32), 32), ((32, 0), 32), ((0, 32), 32), ((30, 32), 31), ((0, 0), None), ((None, None), None)],
)
def test_an_idle_moment_is_no_sequence(running: tuple[float | None, ...], expected: float | None) -> None:
    before, after = (Load(running=n) for n in running)
    assert sequences_of(look(before, after)) == expected


@pytest.mark.parametrize("running", [float("nan"), float("inf"), -4.0])
def test_what_is_no_number_of_requests_is_none(running: float) -> None:
    assert sequences_of(look(Load(running=running), Load(running=8))) == 8
    assert sequences_of(look(Load(running=running), Load(running=running))) is None


def test_idle_at_both_looks_and_busy_between() -> None:
    """240 seconds of steps, summed over requests, within 30: eight at once."""
    before, after = (Load(running=0, token_s=pair) for pair in ((100.0, 9000.0), (340.0, 19000.0)))
    assert sequences_of(look(before, after)) == 8
    assert sequences_of(look(after, after)) is None


def test_what_is_told_comes_first(run: Run) -> None:
    busy = replace(look(Load(running=32), Load(running=32)), sequences=4)
    assert sequences_of(busy) == 4
    assert sequences_of(replace(busy, case=kimi(sequences=2))) == 2
    assert run.meta.schedule.concurrency == 1
    assert sequences_of(Readings(candidate=run)) == 1
    assert sequences_of(Readings(candidate=run, sequences=16)) == 16


def test_nothing_tells() -> None:
    assert sequences_of(Readings()) is None
    assert sequences_of(Readings(log=log())) is None


def test_the_context_is_the_runs_unless_it_is_told(run: Run) -> None:
    assert context_tokens_of(Readings()) == 0
    found = context_tokens_of(Readings(candidate=run))
    assert found == context_of(run) > 0
    assert context_tokens_of(Readings(baseline=run)) == found
    assert context_tokens_of(Readings(candidate=run, context_tokens=900)) == 900
    assert context_tokens_of(Readings(candidate=run, case=kimi())) == found
