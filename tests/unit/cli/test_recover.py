"""`breakeven recover` where nothing is to be put back, or a trial runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from breakeven.cli.recover import recover
from breakeven.errors import UsageError
from breakeven.servers.occupied import occupied


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "state"))


def said(*words: str) -> str:
    return CliRunner().invoke(recover, words, catch_exceptions=False, standalone_mode=False).stdout


@pytest.mark.parametrize("words", [(), ("--list",)])
def test_a_trial_that_runs_is_told(words: tuple[str, ...]):
    with occupied("docker:a"):
        assert "a trial on docker:a runs (process " in said(*words)
        assert said(*words).endswith("nothing is to be put back\n")
    assert said(*words) == "nothing is to be put back\n"


def test_a_trial_that_runs_is_in_the_list_for_programs():
    with occupied("docker:a"):
        listed = json.loads(said("--list", "--json"))
    assert listed["pending"] == []
    assert [trial["target"] for trial in listed["running"]] == ["docker:a"]


def test_a_trial_that_runs_is_not_recovered():
    with occupied("docker:a"), pytest.raises(UsageError, match="wait until it ends, or end it"):
        said("docker:a")
    with pytest.raises(UsageError, match="no cut-off trial on 'docker:a'"):
        said("docker:a")
