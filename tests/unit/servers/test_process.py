"""A server that breakeven starts: stopped when told to, gone when breakeven is, whatever it left running."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.process import ProcessServer

PATIENCE_S = 20.0
ROOT = Path(__file__).parents[3]
LISTEN = """
    import os, signal, socket, subprocess, sys, time
    {before}
    listener = socket.create_server(("127.0.0.1", {port}))
    print("PID", os.getpid(), "listening", flush=True)
    {after}
    time.sleep(600)
"""
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
CHILD = (
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
    " close_fds=False, start_new_session={session}); os.set_inheritable(listener.fileno(), True);"
    " print('CHILD', child.pid, flush=True)"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def script(folder: Path, port: int, before: str = "", after: str = "") -> tuple[str, ...]:
    file = folder / "server.py"
    file.write_text(textwrap.dedent(LISTEN.format(port=port, before=before, after=after)))
    return (sys.executable, str(file))


def command_of(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not is_running(pid):
            return True
        time.sleep(0.02)
    return False


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


async def logged(server: ProcessServer, word: str) -> int:
    """The number behind a word in its log."""
    async with asyncio.timeout(PATIENCE_S):
        async for line in server.logs():
            if line.startswith(word):
                return int(line.split()[1])
    raise AssertionError(f"no {word}")


async def test_it_starts_stops_and_starts_again(tmp_path: Path):
    port = free_port()
    server = ProcessServer(script(tmp_path, port), tmp_path / "log")
    assert (await server.state()).condition == "stopped"
    await server.restart()
    pid = await logged(server, "PID")
    assert pid == server.pid
    assert (await server.state()).condition == "running"
    await server.restart()
    assert ends(pid)
    second = await logged(server, "PID")
    assert second != pid
    await server.stop()
    await server.stop()
    assert not is_running(second)
    assert is_free(port)
    assert (await server.state()).condition == "stopped"


async def test_the_candidate_is_another_command_line_and_the_undo_the_first_one(tmp_path: Path):
    async with ProcessServer(("sleep", "600"), tmp_path / "log") as server:
        found = await server.inspect()
        argv = ("sh", "-c", "echo PID 7; exec sleep 600", "--api-key", "hush")
        (operation,) = server.change(found, argv)
        await operation.do(FakeHost())
        await server.restart()
        assert await logged(server, "PID") == 7
        assert "hush" not in server.diff(found, argv)
        await operation.undo(FakeHost())
        await server.restart()
        assert command_of(server.pid) == [b"sleep", b"600"]


async def test_folder_and_variables_are_its_own(tmp_path: Path):
    (tmp_path / "here").mkdir()
    command = ("sh", "-c", 'echo "$PWD $GREETING"; exec sleep 600')
    server = ProcessServer(
        command, tmp_path / "log", cwd=tmp_path / "here", environment={"GREETING": "a b; $x"}
    )
    async with server:
        await server.restart()
        line = await anext(server.logs())
    assert line == f"{tmp_path / 'here'} a b; $x"


async def test_one_that_ignores_sigterm_is_killed(tmp_path: Path):
    server = ProcessServer(script(tmp_path, free_port(), before=STUBBORN), tmp_path / "log", grace_s=0.2)
    await server.restart()
    pid = await logged(server, "PID")
    await server.stop()
    assert not is_running(pid)


@pytest.mark.parametrize("session", [False, True])
async def test_its_children_end_with_it_even_in_sessions_of_their_own(tmp_path: Path, session: bool):
    port = free_port()
    server = ProcessServer(script(tmp_path, port, after=CHILD.format(session=session)), tmp_path / "log")
    await server.restart()
    child = await logged(server, "CHILD")
    await server.stop()
    assert ends(child)
    assert is_free(port)


async def test_one_that_ends_by_itself_has_failed_and_says_how(tmp_path: Path):
    command = ("sh", "-c", "sleep 600 & echo CHILD $!; echo last words; exit 7")
    async with ProcessServer(command, tmp_path / "log") as server:
        await server.restart()
        lines = [line async for line in server.logs()]
        state = await server.state()
    assert lines[-1] == "last words"
    assert (state.condition, state.detail) == ("failed", "ended with status 7")
    assert ends(int(lines[0].split()[1]))


async def test_one_that_is_killed_has_failed(tmp_path: Path):
    async with ProcessServer(script(tmp_path, free_port()), tmp_path / "log") as server:
        await server.restart()
        os.kill(await logged(server, "PID"), signal.SIGKILL)
        assert [line async for line in server.logs()]
        assert (await server.state()).detail == "was killed by SIGKILL"


async def test_a_command_that_is_not_there(tmp_path: Path):
    server = ProcessServer(("no-such-engine",), tmp_path / "log")
    with pytest.raises(ServerError, match="no-such-engine cannot be started"):
        await server.restart()
    assert (await server.state()).condition == "stopped"
    with pytest.raises(UsageError, match="command line: type it behind --, such as  -- vllm serve"):
        ProcessServer((), tmp_path / "log")


@pytest.mark.parametrize("victim", ["tool", "guard"])
@pytest.mark.skipif(sys.platform != "linux", reason="the death of a parent is told on Linux")
def test_kill_9_leaves_no_orphan_that_keeps_the_port(tmp_path: Path, victim: str):
    port = free_port()
    argv = script(tmp_path, port, before=STUBBORN, after=CHILD.format(session=False))
    tool = subprocess.Popen(
        [sys.executable, "-c", TOOL, str(tmp_path / "log"), *argv],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert tool.stdout is not None
    guard, pid, child = map(int, tool.stdout.readline().split())
    try:
        os.kill(tool.pid if victim == "tool" else guard, signal.SIGKILL)
        assert ends(pid)
        assert ends(child), "by the guard, or by the tool that lost its guard"
        if victim == "tool":
            assert ends(guard)
        assert is_free(port)
    finally:
        tool.kill()
        tool.communicate()


TOOL = """
import asyncio, sys
from pathlib import Path
from breakeven.servers.process import ProcessServer

async def main():
    server = ProcessServer(tuple(sys.argv[2:]), Path(sys.argv[1]), grace_s=0.2)
    await server.restart()
    numbers = {}
    async for line in server.logs():
        numbers[line.split()[0]] = line.split()[1]
        if "CHILD" in numbers:
            break
    print(server._guard.pid, numbers["PID"], numbers["CHILD"], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
