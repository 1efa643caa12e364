"""One trial on a target at a time, whoever runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from breakeven.errors import UsageError
from breakeven.servers.occupied import all_running, occupied, refuse_occupied


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "state"))


def test_a_second_trial_is_refused_and_told_which_process_has_the_first():
    said = rf"a trial on docker:a runs \(process {os.getpid()}, since .*\): wait until it ends, or end it"
    with occupied("docker:a"), occupied("docker:b"):
        with pytest.raises(UsageError, match=said), occupied("docker:a"):
            raise AssertionError("two of them")
        with pytest.raises(UsageError, match=said):
            refuse_occupied("docker:a")
        assert [running.target for running in all_running()] == ["docker:a", "docker:b"]


def test_it_is_free_once_the_trial_is_over_in_whatever_way():
    with pytest.raises(RuntimeError), occupied("docker:a"):
        raise RuntimeError
    refuse_occupied("docker:a")
    assert all_running() == ()
    with occupied("docker:a"):
        assert len(all_running()) == 1


def test_before_any_trial_nothing_runs():
    refuse_occupied("docker:a")
    assert all_running() == ()


def test_a_lock_that_says_nothing_yet_is_one_all_the_same(tmp_path: Path):
    with occupied("docker:a"):
        (path,) = tmp_path.glob("state/targets/*")
        path.write_text("")
        with pytest.raises(UsageError, match="just now: try again"), occupied("docker:a"):
            raise AssertionError("two of them")
        assert all_running() == ()
