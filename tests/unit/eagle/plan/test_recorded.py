"""Lengths of samples, from a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.eagle.plan.recorded import lengths_of
from breakeven.errors import UsageError
from breakeven.trace.records import RequestError
from tests.unit.forecast.served import a_run, served


def test_means_over_requests_that_say_both(tmp_path: Path):
    failed = served("c#0", 9000, 0.1, tokens=9, error=RequestError("TimedOut", "late"))
    run = a_run(
        tmp_path / "run",
        [
            served("a#0", 100, 0.1, tokens=20),
            served("b#0", 300, 0.1, tokens=40),
            failed,
            served("d#0", None, 0.1),
        ],
    )
    found = lengths_of(run)
    assert (found.prompt, found.reply, found.requests) == (200, 30, 2)


def test_a_run_that_says_nothing(tmp_path: Path):
    run = a_run(tmp_path / "run", [served("a#0", None, 0.1)])
    with pytest.raises(UsageError, match="--tokens-per-sample N"):
        lengths_of(run)
