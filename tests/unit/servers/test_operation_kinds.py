"""Operations: what they do, that their undo leaves no trace, and that the journal's JSON is enough for it."""

import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import ServerError, StorageError, UsageError
from breakeven.servers import sudo_host
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.host import LocalHost, partial_of
from breakeven.servers.operation_kinds import RunCommand, StartWith, WriteFile, operation_from_json
from breakeven.servers.operations import Completed
from breakeven.servers.sudo_host import SudoHost

DROPIN = "/etc/systemd/system/vllm.service.d/90-breakeven.conf"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def half_written(path: Path) -> None:
    path.parent.mkdir()
    Path(partial_of(str(path))).write_bytes(b"da")


def has_ended(pid: int, patience_s: float = 10.0) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def through_json(operation):
    return operation_from_json(json.loads(json.dumps(operation.to_json())))


@given(st.binary(), st.none() | st.binary(), st.integers(0, 0o777), st.none() | st.integers(0, 0o777))
def test_what_the_undo_of_a_written_file_needs_comes_through_json(data, before, mode, before_mode):
    operation = WriteFile("/a/b", data, mode, before, before_mode, ("/a",))
    kept = through_json(operation)
    assert through_json(kept) == kept
    assert (kept.path, kept.before, kept.folders, kept.sha256) == ("/a/b", before, ("/a",), operation.sha256)
    assert kept.before_mode == (None if before is None else before_mode)


def test_text_stays_readable_in_json():
    kept = WriteFile("/a", b"new", before=b"[Service]\n", before_mode=0o600).to_json()["before"]
    assert kept == {"mode": 0o600, "text": "[Service]\n"}


async def test_a_new_file_goes_with_the_folders_that_were_made_for_it():
    host = FakeHost(files={"/etc/systemd/system/vllm.service": b"[Service]\n"})
    before = host.snapshot()
    operation = WriteFile.on(host, DROPIN, b"[Service]\nExecStart=\n", 0o600)
    assert operation.folders == ("/etc/systemd/system/vllm.service.d",)
    await operation.do(host)
    assert host.files[DROPIN] == b"[Service]\nExecStart=\n"
    assert host.modes[DROPIN] == 0o600
    await through_json(operation).undo(host)
    assert host.snapshot() == before


async def test_a_folder_that_was_there_stays_even_if_empty():
    host = FakeHost()
    host.folders |= {"/etc", "/etc/systemd", "/etc/systemd/system", "/etc/systemd/system/vllm.service.d"}
    before = host.snapshot()
    operation = WriteFile.on(host, DROPIN, b"x")
    await operation.do(host)
    await operation.undo(host)
    assert host.snapshot() == before


async def test_undo_before_do_and_twice_does_no_harm():
    host = FakeHost(files={"/etc/a": b"old"})
    before = host.snapshot()
    for path in ("/etc/a", DROPIN):
        operation = WriteFile.on(host, path, b"new")
        await operation.undo(host)
        assert host.snapshot() == before
        await operation.do(host)
        await operation.undo(host)
        await operation.undo(host)
        assert host.snapshot() == before


async def test_somebody_elses_change_is_not_overwritten():
    host = FakeHost(files={"/etc/a": b"old"})
    operation = WriteFile.on(host, "/etc/a", b"new")
    host.files["/etc/a"] = b"theirs"
    with pytest.raises(ServerError, match="changed by somebody else"):
        await operation.do(host)
    with pytest.raises(UsageError, match="changed by somebody else"):
        await operation.undo(host)
    assert host.files["/etc/a"] == b"theirs"


async def test_a_command_and_its_undo():
    host = FakeHost()
    operation = RunCommand(("systemctl", "daemon-reload"), ("systemctl", "revert", "it"))
    await operation.do(host)
    await through_json(operation).undo(host)
    assert host.commands == [("systemctl", "daemon-reload"), ("systemctl", "revert", "it")]


async def test_a_command_for_one_direction_only():
    host = FakeHost()
    afterwards = RunCommand(None, ("systemctl", "daemon-reload"))
    await afterwards.do(host)
    assert host.commands == []
    await afterwards.undo(host)
    assert host.commands == [("systemctl", "daemon-reload")]
    await RunCommand(("systemctl", "daemon-reload")).undo(host)
    assert len(host.commands) == 1
    assert afterwards.describe() == "afterwards run systemctl daemon-reload"


async def test_nothing_to_undo_is_told_from_a_failed_undo():
    said = "Error: No such container: x"
    host = FakeHost(lambda argv, stdin: Completed(1, "", said))
    undo = ("docker", "rm", "x")
    await RunCommand(None, undo, nothing_to_undo=("No such container",)).undo(host)
    with pytest.raises(ServerError, match="docker rm x failed with status 1: Error: No such container"):
        await RunCommand(None, undo).undo(host)


def test_secrets_of_a_command_are_neither_shown_nor_kept():
    secret = "s3cret"  # noqa: S105
    words = ("run", "-e", f"HF_TOKEN={secret}", "--api-key", secret, f"--api-key={secret}", "--k=v")
    operation = RunCommand(words, stdin=secret.encode())
    assert secret not in json.dumps(operation.to_json()) + operation.describe()
    assert "--k=v" in operation.describe()
    assert secret not in json.dumps(StartWith(words).to_json())


async def test_start_with_uses_the_command_line_while_breakeven_runs_and_is_nothing_after():
    used = []
    operation = StartWith(("b",), ("a",), used.append)
    host = FakeHost()
    await operation.do(host)
    await operation.undo(host)
    assert used == [("b",), ("a",)]
    await through_json(operation).undo(host)
    assert host.touches == 0


@pytest.mark.parametrize("value", [{}, {"op": "format_disk"}, {"op": "write_file", "path": "/a"}])
def test_what_is_no_operation_is_refused(value):
    with pytest.raises(UsageError):
        operation_from_json(value)


def test_base64_that_is_none_is_refused():
    value = {**WriteFile("/a", b"x").to_json(), "before": {"mode": None, "base64": "***"}}
    with pytest.raises(UsageError, match="write_file"):
        operation_from_json(value)


# LocalHost


async def test_this_machine_writes_whole_files_and_removes_what_it_made(tmp_path: Path):
    host = LocalHost()
    path = tmp_path / "a" / "b" / "c.conf"
    operation = WriteFile.on(host, str(path), b"data", 0o640)
    assert operation.folders == (str(tmp_path / "a"), str(tmp_path / "a" / "b"))
    await operation.do(host)
    assert path.read_bytes() == b"data"
    assert stat.S_IMODE(path.stat().st_mode) == host.mode(str(path)) == 0o640
    assert names(path.parent) == ["c.conf"]
    await operation.undo(host)
    await operation.undo(host)
    assert names(tmp_path) == []


async def test_what_a_kill_left_half_written_is_removed(tmp_path: Path):
    host = LocalHost()
    path = tmp_path / "made" / "c.conf"
    operation = WriteFile.on(host, str(path), b"data")
    half_written(path)
    await operation.undo(host)
    assert names(tmp_path) == []


async def test_a_folder_that_holds_something_by_now_stays(tmp_path: Path):
    host = LocalHost()
    path = tmp_path / "made" / "c.conf"
    operation = WriteFile.on(host, str(path), b"data")
    await operation.do(host)
    (path.parent / "theirs.conf").write_text("x")
    await operation.undo(host)
    assert names(path.parent) == ["theirs.conf"]


def test_a_link_is_left_alone(tmp_path: Path):
    original = tmp_path / "original"
    original.write_text("x")
    (tmp_path / "link").symlink_to(original)
    with pytest.raises(StorageError, match="is a link"):
        LocalHost().write(str(tmp_path / "link"), b"y")
    assert original.read_text() == "x"


async def test_no_shell_sees_a_command():
    done = await LocalHost().run(("printf", "%s|", "$(id)", "a b", "; rm"))
    assert done == Completed(0, "$(id)|a b|; rm|", "")


async def test_stdin_reaches_a_command():
    assert (await LocalHost().run(("cat",), b"words")).stdout == "words"
    big = b"x" * 300_000
    assert (await LocalHost().run(("cat",), big)).stdout == big.decode()
    assert (await LocalHost().run(("true",), big)).returncode == 0


async def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path):
    script = "sleep 60 & echo $! > pid; wait"
    with pytest.raises(ServerError, match="did not come to an end within"):
        await LocalHost().run(("sh", "-c", f"cd {tmp_path}; {script}"), timeout_s=0.5)
    assert has_ended(int((tmp_path / "pid").read_text()))


async def test_a_command_that_says_too_much_is_stopped():
    with pytest.raises(ServerError, match="said more than"):
        await LocalHost().run(("cat", "/dev/zero"))


async def test_a_command_that_is_not_there_is_named():
    with pytest.raises(ServerError, match="no-such-command cannot be started"):
        await LocalHost().run(("no-such-command",))


# SudoHost


@pytest.fixture
def sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sudo that notes how it was called, and does it with our own rights."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "sudo"
    noted = f'echo "$1" >> {folder}/log'
    program.write_text(f'#!/bin/sh\n[ "$1 $2" = "-n --" ] || exit 9\nshift 2\n{noted}\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


async def test_through_sudo_a_file_is_written_and_removed_as_without(tmp_path: Path, sudo: Path):
    host = SudoHost()
    path = tmp_path / "etc" / "a b.conf"
    operation = WriteFile.on(host, str(path), b"data\0\xff", 0o640)
    await operation.do(host)
    assert host.read(str(path)) == LocalHost().read(str(path)) == b"data\0\xff"
    assert host.mode(str(path)) == LocalHost().mode(str(path)) == 0o640
    assert names(path.parent) == ["a b.conf"]
    replaced = WriteFile.on(host, str(path), b"more", 0o600)
    await replaced.do(host)
    assert host.read(str(path)) == b"more"
    await replaced.undo(host)
    assert (host.read(str(path)), host.mode(str(path))) == (b"data\0\xff", 0o640)
    await operation.undo(host)
    await operation.undo(host)
    assert names(tmp_path) == ["bin"]
    assert {"install", "tee", "mv", "rm", "sync"} <= set((sudo / "log").read_text().split())


async def test_through_sudo_a_command_runs_and_its_lines_come(sudo: Path):
    assert await SudoHost().run(("printf", "$x")) == Completed(0, "$x", "")
    assert [line async for line in SudoHost().lines(("printf", "a\nb"))] == ["a", "b"]
    assert (sudo / "log").read_text().split() == ["printf", "printf"]


async def test_a_sudo_that_would_ask_says_what_to_type(sudo: Path):
    (sudo / "sudo").write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    with pytest.raises(ServerError, match="type  sudo -v"):
        await SudoHost().run(("true",))
    with pytest.raises(ServerError, match="type  sudo -v"):
        SudoHost().read("/etc/no-such-file")


@pytest.mark.parametrize("can_be_killed", [True, False])
def test_a_sudo_that_hangs_is_not_waited_for(
    sudo: Path, monkeypatch: pytest.MonkeyPatch, can_be_killed: bool
):
    (sudo / "sudo").write_text(f"#!/bin/sh\necho $$ > {sudo}/pid\nexec sleep 60\n")

    def forbidden(process: subprocess.Popen[bytes]) -> None:
        raise PermissionError

    if not can_be_killed:
        monkeypatch.setattr(subprocess.Popen, "kill", forbidden)
    monkeypatch.setattr(sudo_host, "SUDO_TIMEOUT_S", 0.5)
    monkeypatch.setattr(sudo_host, "KILL_S", 0.1)
    with pytest.raises(
        ServerError, match=r"sudo -n -- test -e /x did not come to an end within 0\.5 s"
    ) as raised:
        SudoHost().mode("/x")
    pid = int((sudo / "pid").read_text())
    assert (f"sudo kill {pid}" in str(raised.value)) is not can_be_killed
    if not can_be_killed:
        os.kill(pid, signal.SIGKILL)


async def test_lines_come_one_by_one_and_closing_them_ends_the_command(tmp_path: Path):
    script = f"echo $$ > {tmp_path}/pid; echo one; echo two >&2; exec sleep 600"
    lines = LocalHost().lines(("sh", "-c", script))
    assert {await anext(lines), await anext(lines)} == {"one", "two"}
    await lines.aclose()
    assert has_ended(int((tmp_path / "pid").read_text()))


async def test_a_line_without_end_comes_in_pieces():
    said = [line async for line in LocalHost().lines(("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"))]
    assert sum(map(len, said)) == 3_000_000


# What the journal keeps, and whose a file is


@pytest.mark.parametrize("before", [None, b"old"])
async def test_the_journal_keeps_no_text_that_undo_does_not_need(before: bytes | None):
    """A command line may hold a key."""
    host = FakeHost(files={} if before is None else {"/etc/a": before})
    operation = WriteFile.on(host, "/etc/a", b"ExecStart=serve --api-key s3cret")
    start = host.snapshot()
    assert "s3cret" not in json.dumps(operation.to_json())
    await operation.do(host)
    await through_json(operation).undo(host)
    assert host.snapshot() == start


async def test_what_a_journal_tells_of_a_file_can_only_be_undone():
    host = FakeHost()
    with pytest.raises(ServerError, match="only be undone"):
        await through_json(WriteFile.on(host, "/etc/a", b"new")).do(host)
    assert host.touches == 0


async def test_a_file_that_somebody_else_made_meanwhile_is_left_alone():
    """Not there when it was looked at, and not ours now: neither written nor removed."""
    host = FakeHost()
    operation = WriteFile.on(host, DROPIN, b"new")
    host.files[DROPIN] = b"theirs"
    with pytest.raises(ServerError, match="changed by somebody else"):
        await operation.do(host)
    for undone in (operation, through_json(operation)):
        with pytest.raises(UsageError, match=r"move it away.*breakeven recover"):
            await undone.undo(host)
    assert host.files == {DROPIN: b"theirs"}
    del host.files[DROPIN]
    await operation.undo(host)


async def test_a_file_that_nobody_may_read_is_put_back_so():
    host = FakeHost(files={"/etc/a": b"old"})
    host.modes["/etc/a"] = 0
    start = host.snapshot()
    operation = WriteFile.on(host, "/etc/a", b"new")
    await operation.do(host)
    await through_json(operation).undo(host)
    assert host.snapshot() == start


def test_undos_are_told_in_words():
    new, replaced = WriteFile("/a", b"x"), WriteFile("/a", b"x", before=b"y")
    assert (new.describe_undo(), replaced.describe_undo()) == ("remove /a", "put /a back as it was")
    assert RunCommand(("a",)).describe_undo() is None
    assert RunCommand(None, ("a", "--api-key", "b")).describe_undo() == "run a --api-key '***'"
    assert StartWith(("a",)).describe_undo() is None


async def test_what_anybody_may_read_is_read_without_sudo(tmp_path: Path, sudo: Path):
    """Each of them is a session and a line in a log; and what waits for one stands still."""
    (tmp_path / "plain").write_bytes(b"x")
    assert SudoHost().read(str(tmp_path / "plain")) == b"x"
    assert not (sudo / "log").exists()
    assert SudoHost().read(str(tmp_path / "none")) is None
    assert (sudo / "log").read_text().split() == ["test"]
