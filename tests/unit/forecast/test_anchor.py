"""The step that a run has measured, and the runs that have measured none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.errors import UsageError
from breakeven.forecast.anchor import anchor_of, speculated
from breakeven.trace.meta import Schedule
from breakeven.trace.records import RequestTrace
from tests.unit.forecast.served import a_run, served


def in_turn(step_s: float = 0.012) -> list[RequestTrace]:
    return [served(f"{i}#0", 100, 0.5, step_s, tokens=40, at_s=2 * i) for i in range(4)]


def test_a_run_alone_gives_its_plain_step(tmp_path: Path):
    found = anchor_of(a_run(tmp_path / "r", in_turn()))
    assert found.seconds == pytest.approx(0.012, rel=1e-6)
    assert (found.step.tokens, found.step.sequences, found.step.context_tokens) == (1, 1, 120)


def test_two_in_flight_give_the_step_of_two(tmp_path: Path):
    """The prefill of each is no part of it, nor is the time in which one of them is left alone."""
    pairs = [served(f"{i}#0", 100, 0.1, 0.02, tokens=60, at_s=3 * (i // 2)) for i in range(4)]
    found = anchor_of(a_run(tmp_path / "r", pairs, schedule=Schedule("closed", concurrency=2)))
    assert found.seconds == pytest.approx(0.02, rel=1e-6) and found.step.sequences == 2


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"schedule": Schedule("open", rate_per_s=2.0)}, "open loop"),
        ({"schedule": Schedule("closed", concurrency=3)}, "too few steps with all of 3"),
        ({"status": "void"}, "self-check failed"),
        ({"counters": SpecCounters(drafts=3, drafted_tokens=9)}, "speculated"),
    ],
)
def test_runs_that_tell_no_plain_step(changes: dict[str, Any], why: str, tmp_path: Path):
    run = a_run(tmp_path / "r", in_turn(), **changes)
    with pytest.raises(UsageError, match=why):
        anchor_of(run)


def test_a_request_that_drafted_tells_that_its_run_speculated(tmp_path: Path):
    plain, drafted = in_turn()[:1], in_turn()
    drafted[-1] = replace(drafted[-1], speculation=SpecCounters(drafts=1, drafted_tokens=3))
    assert speculated(a_run(tmp_path / "drafted", drafted))
    assert not speculated(a_run(tmp_path / "plain", plain, counters=SpecCounters(drafts=0, drafted_tokens=0)))
