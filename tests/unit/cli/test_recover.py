"""`breakeven recover` where nothing is to be put back, or a trial runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from breakeven.cli.recover import recover
from breakeven.errors import UsageError
from breakeven.servers.occupied import occupied
from breakeven.servers.operation_kinds import WriteFile
from breakeven.servers.undo_journal import UndoJournal
from tests.unit.servers.fake_service import FOUND, VERIFICATION


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


@pytest.fixture
def recovering() -> Iterator[str]:
    """A journal that another process puts back; here it is this one."""
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        journal.about_to(WriteFile("/etc/a.conf", b"new"))
        path = journal.path
    with UndoJournal.adopt(path):
        yield f"process {os.getpid()} has been putting {FOUND.target} back since 20"


@pytest.mark.parametrize("words", [(), ("--list",)])
def test_a_recovery_that_is_under_way_is_named(words: tuple[str, ...], recovering: str):
    told = said(*words)
    assert told.startswith(recovering)
    assert told.endswith(": wait until it ends\nnothing else is to be put back\n")


def test_a_recovery_that_is_under_way_is_in_the_list_for_programs(recovering: str):
    (one,) = json.loads(said("--list", "--json"))["recovering"]
    assert (one["target"], one["pid"]) == (FOUND.target, os.getpid())


def test_what_is_being_put_back_is_not_put_back_twice(recovering: str):
    with pytest.raises(UsageError, match=f"{recovering}.*: wait until it ends"):
        said(FOUND.target)
    with pytest.raises(UsageError, match=f"{recovering}.*: wait until it ends"):
        UndoJournal.open("systemd", FOUND, VERIFICATION)


def test_a_trial_that_holds_its_journal_is_no_recovery():
    with UndoJournal.open("systemd", FOUND, VERIFICATION):
        assert said() == "nothing is to be put back\n"
        with pytest.raises(UsageError, match=f"process {os.getpid()} has had a trial on"):
            UndoJournal.open("systemd", FOUND, VERIFICATION)
