"""ProcessServer: a command line that breakeven itself starts and stops; it never outlives breakeven."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import ClassVar

from breakeven.errors import ServerError, UsageError
from breakeven.secrets import shown_argv
from breakeven.servers import guard
from breakeven.servers.argv_diff import argv_diff
from breakeven.servers.child import ending, open_log
from breakeven.servers.lifecycle import Found, Kind, Lifecycle, State
from breakeven.servers.operation_kinds import StartWith
from breakeven.servers.operations import Operation

GRACE_S = 30.0
"""From SIGTERM to SIGKILL: engines with large models take their time to free memory."""
KILL_S = 10.0
LOOK_S = 0.1
LONGEST_LINE_BYTES = 65_536
SUCH_AS = "such as  -- vllm serve MODEL --port 8000"


class ProcessServer(Lifecycle):
    """A server of a command line; its output is appended to a log file.

    Between it and breakeven stands a guard (guard.py), by which it ends with breakeven however that one ends.
    """

    kind: ClassVar[Kind] = "process"

    def __init__(
        self,
        argv: tuple[str, ...],
        log_path: Path,
        *,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        """`environment` is added to ours. Raises UsageError for an empty command line."""
        if not argv:
            raise UsageError(f"a process server needs a command line: type it behind --, {SUCH_AS}")
        self.target = f"process:{Path(argv[0]).name}-{_digest(argv, cwd)}"
        self._argv = tuple(argv)
        self._log_path = log_path
        self._cwd = cwd
        self._environment = dict(environment or {})
        self._grace_s = grace_s
        self._guard: asyncio.subprocess.Process | None = None
        self._pid: int | None = None
        self._returncode: int | None = None
        self._watching: asyncio.Task[None] | None = None
        self._log_start = 0
        self._since = time.monotonic()
        self._stopping = False

    @property
    def look_s(self) -> float:
        """A look costs nothing: its end is told."""
        return 0.5

    @property
    def pid(self) -> int | None:
        """Of the server, also after it ended; None before it was started."""
        return self._pid

    async def inspect(self) -> Found:
        folder = str(self._cwd or Path.cwd())
        evidence = {"log": str(self._log_path), "cwd": folder}
        return Found(self.target, self._argv, self._environment, evidence, folder=folder)

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        return (StartWith(tuple(argv), found.argv, self._use),)

    def diff(self, found: Found, argv: tuple[str, ...]) -> str:
        return argv_diff(found.argv, argv, found.target)

    async def restart(self) -> None:
        await self.stop()
        with open_log(self._log_path) as log:
            self._log_start = log.tell()
            self._guard = await self._spawn(log.fileno())
        self._stopping, self._returncode, self._since = False, None, time.monotonic()
        self._pid = await self._started(self._guard)
        self._watching = asyncio.create_task(self._watch(self._guard))

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL to it and all it started. Safe to call twice or before it was started.
        Raises ServerError where it does not end."""
        if self._guard is None or self._watching is None:
            return
        self._stopping = self._stopping or self._returncode is None
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._watching), self._grace_s + KILL_S)
        except TimeoutError:
            raise ServerError(f"process {self._pid} does not end: type  kill -9 {self._pid}") from None
        self._guard = None

    async def state(self) -> State:
        since_s = time.monotonic() - self._since
        if self._pid is None or (self._stopping and self._returncode is not None):
            return State("stopped", since_s=since_s)
        if self._returncode is None:
            return State("running", f"pid {self._pid}", since_s)
        return State("failed", ending(self._returncode), since_s)

    async def logs(self) -> AsyncIterator[str]:
        unended = b""
        with open_log(self._log_path, "rb") as log:
            log.seek(self._log_start)
            while True:
                has_ended = self._returncode is not None
                piece = log.read(LONGEST_LINE_BYTES)
                *lines, unended = (unended + piece).split(b"\n")
                for line in lines:
                    yield line.decode(errors="replace").rstrip("\r")
                if not piece and has_ended:
                    break
                if not piece:
                    await asyncio.sleep(LOOK_S)
        if unended:
            yield unended.decode(errors="replace")

    async def __aenter__(self) -> ProcessServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _use(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    async def _spawn(self, log: int) -> asyncio.subprocess.Process:
        """The guard is in a session of its own, which the terminal's Ctrl-C does not reach."""
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                guard.__file__,
                str(self._grace_s),
                "--",
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=self._cwd,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        except OSError as error:
            raise ServerError(f"{shown_argv(self._argv)} cannot be started: {error}") from error

    async def _started(self, process: asyncio.subprocess.Process) -> int:
        assert process.stdin is not None  # noqa: S101  pipes were asked for
        assert process.stdout is not None  # noqa: S101
        answer = _message(await process.stdout.readline())
        if "pid" not in answer:
            self._guard = None
            process.stdin.close()
            await process.wait()
            raise ServerError(str(answer.get("error", "the guard of the process did not start")))
        return int(str(answer["pid"]))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Until the server and its guard have ended; a guard that was killed took the server with it."""
        assert process.stdout is not None  # noqa: S101
        answer = _message(await process.stdout.readline())
        await process.wait()
        returncode = int(str(answer.get("returncode", -signal.SIGKILL)))
        if "returncode" not in answer and self._pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        self._returncode, self._since = returncode, time.monotonic()


def _message(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _digest(argv: tuple[str, ...], cwd: Path | None) -> str:
    return hashlib.sha256("\0".join([str(cwd or Path.cwd()), *argv]).encode()).hexdigest()[:8]
