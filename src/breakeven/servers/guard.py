"""Guard: the process between breakeven and a server that it starts: `python guard.py GRACE_S -- ARGV…`.

The server gets a process group of its own. The guard ends it, and all that it started, when its stdin ends:
that is how it is told to, and what happens when breakeven is killed. If the guard is killed, the server dies
with it (Linux).
Writes JSON lines on stdout: {"pid"} or {"error"}, then {"returncode"}. It imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Linux prctl(2): the signal that this process gets when the thread that started it ends."""
PR_SET_CHILD_SUBREAPER = 36
"""Linux prctl(2): what outlives its parent, below this process, becomes its child."""
LOOK_S = 0.05


def die_with(parent_pid: int) -> None:
    """Have this process killed when the thread that started it ends, for which the parent stands."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:
            os._exit(0)


def main(argv: list[str]) -> int:
    """Serve until the server ends or stdin does; the server's return code is written, not returned."""
    grace_s, command = float(argv[0]), argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        server = _start(command)
    except (OSError, subprocess.SubprocessError) as error:
        _say({"error": f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}"})
        return 1
    _say({"pid": server.pid})
    while server.poll() is None and not _stdin_ended(LOOK_S):
        pass
    _end(server, grace_s)
    _say({"returncode": server.returncode})
    return 0


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """Its output is the guard's stderr. Signals that the guard ignores are not ignored in it."""
    guard_pid = os.getpid()

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        die_with(guard_pid)

    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, process_group=0, preexec_fn=prepare)


def _stdin_ended(patience_s: float) -> bool:
    ready, _, _ = select.select([0], [], [], patience_s)
    return bool(ready) and not os.read(0, 4096)


def _end(server: subprocess.Popen[bytes], grace_s: float) -> None:
    """SIGTERM to the server, which knows its own children best; after its grace SIGKILL to all there is."""
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(grace_s)
    for _ in range(100):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGKILL)
        left = _children()
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        server.poll()
        if not left:
            break
        _reap(server.pid)
        time.sleep(LOOK_S)
    server.wait()


def _children() -> list[int]:
    """Of this process, those that it inherited among them; none where the system does not tell."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _reap(server_pid: int) -> None:
    """Take note of the end of inherited children; that of the server is Popen's to note."""
    for pid in _children():
        if pid != server_pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _say(line: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
