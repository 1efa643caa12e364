"""EmbeddedServer: llama.cpp in a child process of its own, started, found ready, and always stopped."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from breakeven.engines.llamacpp import LlamaSettings
from breakeven.errors import MissingExtra, ServerError
from breakeven.servers.child import ending, open_log

START_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 5.0
"""Limit of each of the three ways to stop: stdin closed, SIGTERM, SIGKILL."""
PROBE_PAUSE_S = 0.1
LOG_LINES = 8
PROBE = {"prompt": "One, two, three,", "max_tokens": 4, "temperature": 0}


class EmbeddedServer:
    """One llama.cpp server on a free loopback port.

    The child runs in a session of its own, so that Ctrl-C in the terminal reaches only the parent, which
    saves first and then calls `stop`. It watches its stdin and ends with its parent, however that one ends.
    On Linux it also ends with the thread that called `start`: call it from one that outlives the server.

    async with EmbeddedServer() as server:
        url = await server.start(model, settings, "smollm2", Path("engine.log"))
    """

    def __init__(self, start_timeout_s: float = START_TIMEOUT_S) -> None:
        self.start_timeout_s = start_timeout_s
        self.url: str | None = None
        self.reload_s: float | None = None
        """From the start of the process to the first real completion; None before that."""
        self._process: asyncio.subprocess.Process | None = None
        self._log_path = Path(os.devnull)
        self._log_start = 0
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """Process id of the child, also after it ended; None if it was never started."""
        return self._process.pid if self._process else None

    async def start(self, model: Path, settings: LlamaSettings, name: str, log_path: Path) -> str:
        """Start the engine; return its base URL once a real completion has come back with tokens.

        `name` is the model name that requests use. The engine's own output is appended to `log_path`.
        Raises ServerError when it crashes or is not ready in time (with the last lines of its log),
        MissingExtra without xllamacpp, StorageError when the log cannot be written.
        """
        if self._process is not None:
            raise ServerError("this server was already started: make a new EmbeddedServer for each start")
        began = time.monotonic()
        deadline = began + self.start_timeout_s
        try:
            await self._spawn(model, settings, name, log_path)
            self.url = await self._reported_url(deadline, model)
            await self._first_completion(self.url, deadline, model)
        except BaseException:
            await self.stop()
            raise
        self.reload_s = time.monotonic() - began
        return self.url

    async def stop(self) -> None:
        """End the child: close its stdin, then SIGTERM, then SIGKILL. Safe to call twice or before start."""
        process = self._process
        if process is None:
            return
        self._stopping = self._stopping or process.returncode is None
        if process.stdin is not None:
            process.stdin.close()
        for step in (None, signal.SIGTERM, signal.SIGKILL):
            if step is not None and process.returncode is None:
                process.send_signal(step)
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
                return
            except TimeoutError:
                continue
        raise ServerError(f"process {process.pid} does not end: type  kill -9 {process.pid}")

    def failure(self) -> str | None:
        """Why the child ended by itself, with the end of its log; None while it runs, and after `stop`."""
        if self._process is None or self._process.returncode is None or self._stopping:
            return None
        return f"the embedded engine {ending(self._process.returncode)}{self._log_tail()}"

    async def __aenter__(self) -> EmbeddedServer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _spawn(self, model: Path, settings: LlamaSettings, name: str, log_path: Path) -> None:
        with open_log(log_path) as log:
            self._log_path, self._log_start = log_path, log.tell()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "breakeven.servers.embedded_child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        config = {"model": str(model), "name": name, "flags": settings.flags(), "parent_pid": os.getpid()}
        stdin = self._process.stdin
        if stdin is not None:
            stdin.write(json.dumps(config).encode() + b"\n")

    async def _reported_url(self, deadline: float, model: Path) -> str:
        process = self._running()
        assert process.stdout is not None  # noqa: S101  a pipe was asked for
        try:
            line = await asyncio.wait_for(process.stdout.readline(), deadline - time.monotonic())
        except TimeoutError:
            raise self._too_late(model) from None
        if not line:
            raise await self._crash(model)
        answer: dict[str, str] = json.loads(line)
        if "missing" in answer:
            raise MissingExtra(answer["missing"], "local")
        if "error" in answer:
            raise ServerError(f"llama.cpp cannot serve {model}: {answer['error']}{self._log_tail()}")
        return answer["url"]

    async def _first_completion(self, url: str, deadline: float, model: Path) -> None:
        """Ask until an answer with tokens comes, the child ends, or the time is up."""
        process = self._running()
        ended = asyncio.ensure_future(process.wait())
        try:
            while (left_s := deadline - time.monotonic()) > 0:
                asked = asyncio.ensure_future(asyncio.to_thread(_complete, url, left_s))
                await asyncio.wait({asked, ended}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    raise await self._crash(model)
                if asked.done() and asked.result():
                    return
                await asyncio.sleep(PROBE_PAUSE_S)
        finally:
            ended.cancel()
        raise self._too_late(model)

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise ServerError("the server was not started: call start first")
        return self._process

    async def _crash(self, model: Path) -> ServerError:
        await self._running().wait()
        return ServerError(f"{model} could not be served: {self.failure()}")

    def _too_late(self, model: Path) -> ServerError:
        return ServerError(
            f"the embedded engine did not answer within {self.start_timeout_s:g} s with {model}: "
            f"try a smaller model{self._log_tail()}"
        )

    def _log_tail(self) -> str:
        """The last lines of this start's log, on lines of their own, and where the whole of it is."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - 16_384))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return f"; its log {self._log_path} cannot be read"
        tail = "".join(f"\n  {line}" for line in lines[-LOG_LINES:])
        return (
            f"; the end of its log {self._log_path}:{tail}"
            if tail
            else f"; its log {self._log_path} is empty"
        )


def _complete(url: str, timeout_s: float) -> bool:
    """One completion, past any proxy; False where the server answers anything but tokens."""
    request = urllib.request.Request(  # noqa: S310  a loopback URL that the child reported
        f"{url}/v1/completions", json.dumps(PROBE).encode(), {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as response:
            answer: Any = json.load(response)
        return bool(answer["usage"]["completion_tokens"] >= 1)
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False
