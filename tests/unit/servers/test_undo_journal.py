"""The undo journal: on disk first, held by one, readable whatever was cut off, and without a secret."""

import asyncio
import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from breakeven.errors import ServerError, StorageError, UsageError
from breakeven.servers import undo_journal
from breakeven.servers.host import LocalHost
from breakeven.servers.lifecycle import Found
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.recovery import pending
from breakeven.servers.undo_journal import UndoJournal, is_held, journals_folder
from breakeven.servers.undo_record import read_record
from tests.unit.servers.fake_service import FOUND, VERIFICATION

OPERATION = WriteFile("/etc/a.conf", b"new")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "breakeven"))


def open_journal(found: Found = FOUND) -> UndoJournal:
    return UndoJournal.open("systemd", found, VERIFICATION, {"sudo": True})


def test_it_says_what_was_found_before_anything_is_done():
    with open_journal() as journal:
        record = read_record(journal.path)
    assert record.target == "systemd:vllm.service"
    assert record.verify == VERIFICATION
    assert record.found["argv"] == ["vllm", "serve", "m"]
    assert record.options == {"sudo": True}
    assert record.holder["pid"] == os.getpid()
    assert not record.touched


def test_no_value_of_the_environment_and_no_text_that_was_read_is_in_it():
    with open_journal() as journal:
        text = journal.path.read_text()
    assert "hush" not in text
    assert "HF_TOKEN" in text


def test_only_the_user_can_read_it():
    with open_journal() as journal:
        assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(journal.path.parent.stat().st_mode) == 0o700


def test_an_operation_is_on_disk_before_it_is_done():
    with open_journal() as journal:
        number = journal.about_to(OPERATION)
        (begun,) = read_record(journal.path).begun
        assert begun.operation == OPERATION.to_json()
        assert not begun.done
        journal.done(number)
        assert read_record(journal.path).begun[0].done
        journal.undone(number)
        assert read_record(journal.path).begun == ()


def test_every_entry_is_synced_with_the_folder_at_first(monkeypatch: pytest.MonkeyPatch):
    synced: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())), real(fd))
    )
    with open_journal() as journal:
        assert str(journal.path.parent) in synced
        for write in (lambda: journal.about_to(OPERATION), journal.restarting, journal.restarted):
            synced.clear()
            write()
            assert len(synced) == 1


def test_a_second_trial_on_the_same_target_is_refused():
    with open_journal():
        with pytest.raises(
            UsageError, match=f"process {os.getpid()} has had a trial on systemd:vllm.service"
        ):
            open_journal()
        with open_journal(Found("systemd:other.service", ("x",))) as other:
            assert is_held(other.path)


def test_a_trial_that_was_cut_off_is_to_be_put_back_first():
    open_journal().release()
    with pytest.raises(UsageError, match=r"type  breakeven recover systemd:vllm\.service"):
        open_journal()


def test_a_holder_in_another_process_is_seen_until_it_is_killed(tmp_path: Path):
    script = (
        "import sys; from tests.unit.servers.fake_service import *; "
        "from breakeven.servers.undo_journal import UndoJournal; import platformdirs; "
        f"platformdirs.user_state_dir = lambda *a, **k: {str(tmp_path / 'breakeven')!r}; "
        "journal = UndoJournal.open('systemd', FOUND, VERIFICATION); print(journal.path, flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    path = Path(holder.stdout.readline().strip())
    try:
        with pytest.raises(UsageError, match=f"process {holder.pid} has had a trial"):
            UndoJournal.adopt(path)
    finally:
        holder.kill()
        holder.communicate()
    with UndoJournal.adopt(path) as journal:
        assert journal.record.holder["pid"] == os.getpid()


def test_a_closed_journal_makes_room_for_the_next():
    for _ in range(2):
        with open_journal() as journal:
            journal.close("put back")
        assert not journal.path.exists()
    kept = sorted((journals_folder() / "closed").iterdir())
    assert [read_record(path).closed for path in kept] == ["put back", "put back"]


def test_a_journal_closed_but_not_yet_put_away_makes_room_too(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(undo_journal, "shelve", lambda path: None)
        with open_journal() as journal:
            journal.close("put back")
    assert journal.path.exists()
    with pytest.raises(UsageError, match="nothing to put back"):
        UndoJournal.adopt(journal.path)
    open_journal().release()


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_last_line_is_no_line_and_is_written_over(cut: int):
    with open_journal() as journal:
        journal.about_to(OPERATION)
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-cut])
    assert read_record(journal.path).begun == ()
    with UndoJournal.adopt(journal.path) as adopted:
        adopted.about_to(RunCommand(("true",)))
        (begun,) = read_record(journal.path).begun
    assert begun.operation["op"] == "run_command"


def test_a_line_damaged_in_the_middle_is_named():
    with open_journal() as journal:
        journal.about_to(OPERATION)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    for damaged in ([b"{\n", *lines], [lines[0], b"[]\n"], [lines[0], b'{"entry":"unheard"}\n'], [b"\xff\n"]):
        journal.path.write_bytes(b"".join(damaged))
        with pytest.raises(UsageError, match="is damaged"):
            read_record(journal.path)


def test_a_newer_version_is_not_guessed_at():
    with open_journal() as journal:
        pass
    entry = json.loads(journal.path.read_text())
    journal.path.write_text(json.dumps({**entry, "version": 99}) + "\n")
    with pytest.raises(UsageError, match="version 99"):
        read_record(journal.path)


def test_a_full_disk_leaves_neither_a_journal_nor_half_a_line(monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError):
            open_journal()
        assert not any(entry.is_file() for entry in journals_folder().parent.rglob("*"))
    with open_journal() as journal:
        before = journal.path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StorageError, match="No space left"):
                journal.about_to(OPERATION)
        assert journal.path.read_bytes() == before
        assert journal.record.begun == ()
        assert journal.about_to(OPERATION) == 0


def test_a_released_journal_takes_nothing_more():
    journal = open_journal()
    journal.release()
    journal.release()
    with pytest.raises(ServerError, match="closed already"):
        journal.about_to(OPERATION)


def test_long_and_odd_targets_have_files_of_their_own():
    targets = ["docker:" + "x" * 400, "docker:" + "x" * 401, "compose:/a/b.yaml:vllm", "kubernetes:a/b"]
    journals = [open_journal(Found(target, ("x",))) for target in targets]
    assert len({journal.path for journal in journals}) == len(targets)
    assert {journal.path.parent for journal in journals} == {journals_folder()}
    for journal in journals:
        journal.release()


LAST_COMMAND = """
import asyncio, os, signal, sys
import platformdirs
platformdirs.user_state_dir = lambda *a, **k: sys.argv[1]
from breakeven.servers.host import LocalHost
from breakeven.servers.undo_journal import UndoJournal
from tests.unit.servers.fake_service import FOUND, VERIFICATION

async def main():
    with UndoJournal.open("systemd", FOUND, VERIFICATION):
        asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGKILL)
        await LocalHost().run(("sh", "-c", "echo $$ > $0; exec sleep 600", sys.argv[2]))

asyncio.run(main())
"""


def test_a_recovery_waits_for_the_last_command_of_a_trial_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may still change something: a `docker compose up` goes on when whoever ran it is killed."""
    pid = tmp_path / "pid"
    words = [sys.executable, "-c", LAST_COMMAND, str(tmp_path / "breakeven"), str(pid)]
    assert subprocess.run(words, cwd=Path(__file__).parents[3], check=False).returncode == -signal.SIGKILL
    (left,) = pending()
    assert left.record is not None and is_held(left.path)
    monkeypatch.setattr(undo_journal, "COMMAND_PATIENCE_S", 0.1)
    with pytest.raises(UsageError, match=r"the last command of a trial on .* still runs"):
        UndoJournal.adopt(left.path)
    monkeypatch.setattr(undo_journal, "COMMAND_PATIENCE_S", 60.0)
    ending = threading.Timer(0.2, os.kill, (int(pid.read_text()), signal.SIGKILL))
    ending.start()
    UndoJournal.adopt(left.path).release()
    ending.join()


async def test_a_journal_that_is_let_go_of_is_free_whatever_was_started_meanwhile():
    with open_journal() as journal:
        running = asyncio.ensure_future(LocalHost().run(("sleep", "600")))
        await asyncio.sleep(0.1)
    assert not is_held(journal.path)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
