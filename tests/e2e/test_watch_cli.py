"""`breakeven watch` as a user runs it: on the fake server, on llama.cpp, and ended."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from breakeven.cost.calibration import FILE, save_calibration
from breakeven.engines.llamacpp import LlamaSettings, candidate_settings
from breakeven.servers.embedded import EmbeddedServer
from breakeven.servers.fake import FakeServer, Speculation, vllm_script
from tests.e2e.command import Command, breakeven, fake_process, soon
from tests.unit.watch.pages import calibration

SPECULATION = Speculation(3, 0.7, 0.5, 0.1)
SCRIPT = vllm_script(ttft_s=0.002, tpot_s=0.001, n_tokens=40, speculation=SPECULATION)
CURVE_MS = (10.0, 10.0 + 1 / 3, 11.0)
"""At 1, 2 and 4 tokens: a step that verifies 3 takes a tenth more, as SPECULATION has it."""


@pytest.fixture
def calibrated(tmp_path: Path) -> Path:
    save_calibration(calibration(CURVE_MS, model="fake-model"), tmp_path / FILE)
    return tmp_path / FILE


@contextmanager
def asked(url: str, prompt: str = "hello", max_tokens: int = 40) -> Iterator[None]:
    """One request after the other, for as long as the context lasts."""
    over = threading.Event()
    body = json.dumps({"prompt": prompt, "max_tokens": max_tokens, "temperature": 0}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask() -> None:
        while not over.is_set():
            request = urllib.request.Request(  # noqa: S310
                f"{url}/v1/completions", body, {"Content-Type": "application/json"}
            )
            try:
                opener.open(request, timeout=60).read()
            except (OSError, http.client.HTTPException):
                over.wait(0.1)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_once_prints_one_object_with_the_speedup_that_the_server_has(calibrated: Path) -> None:
    script = replace(SCRIPT, n_tokens=400)
    words = ("--once", "--json", "--calibration", calibrated, "--flat-ms", 0, "--interval", 2)
    with FakeServer(script).in_thread() as server, asked(server.url, max_tokens=400):
        done = breakeven("watch", server.url, *words).succeeded()
    found = done.json()["servers"][0]
    assert found["model"] == "fake-model" and found["engine"] == "vllm"
    now = found["now"]
    assert now["counters"]["drafts"] > 0 and now["speculation"]["drafted_tokens_per_draft"] == 3
    assert now["ratios"]["draft_share"]["value"]["estimate"] == pytest.approx(
        SPECULATION.draft_share, rel=0.2
    )
    assert len(now["accepted_per_position"]) == 3 and now["output_tokens_per_second"] > 0
    assert now["speculation"]["speedup"]["estimate"] == pytest.approx(SPECULATION.speedup, rel=0.1)
    assert now["speculation"]["answer"] == "pays"


def test_a_server_that_goes_away_and_comes_back_is_watched_on() -> None:
    with FakeServer(SCRIPT).in_thread() as steady, fake_process("--tokens", 4) as (url, process):
        command = Command("watch", steady.url, url, "--interval", 0.2, "--window", 2)
        lines = _Lines(command)
        assert lines.soon(lambda line: url in line and "running" in line)
        process.kill()
        assert lines.soon(lambda line: url in line and "nothing answers" in line)
        assert lines.soon(lambda line: steady.url in line and "running" in line)
        command.signal(signal.SIGINT)
        assert command.process.wait(30) == 0
    assert "Traceback" not in "".join(lines.errors())


def test_it_ends_by_itself_and_says_what_stood_at_the_end() -> None:
    with FakeServer(SCRIPT).in_thread() as server, asked(server.url):
        done = breakeven("watch", server.url, "--interval", 0.3, "--window", 4, "--for", 3).succeeded()
    lines = done.out.splitlines()
    assert len(lines) >= 2 and all(server.url in line for line in lines)
    assert "by position" in lines[-1] and re.search(r"acceptance \d\d\.\d %", lines[-1])


def test_gauges_are_served_while_it_watches(calibrated: Path) -> None:
    with FakeServer(SCRIPT).in_thread() as server, asked(server.url):
        words = ("--interval", 0.2, "--window", 2, "--prometheus-port", 0, "--calibration", calibrated)
        command = Command("watch", server.url, *words)
        assert command.process.stderr is not None
        url = command.process.stderr.readline().split()[-1]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert soon(lambda: b"\nbreakeven_acceptance_rate{" in opener.open(url, timeout=10).read())
        text = opener.open(url, timeout=10).read().decode()
        command.signal(signal.SIGTERM)
        command.end().succeeded()
    assert f'breakeven_up{{model="fake-model",url="{server.url}"}} 1.0' in text
    assert 'breakeven_accepted_per_position{model="fake-model",position="0"' in text


def test_a_terminal_is_written_over_and_ctrl_c_ends_cleanly() -> None:
    with FakeServer(SCRIPT).in_thread() as server, asked(server.url):
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "breakeven", "watch", server.url, "--interval", "0.3"],
            stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            env={**os.environ, "COLUMNS": "150", "LINES": "40", "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(follower)
        seen = _until(leader, b"by position")
        process.send_signal(signal.SIGINT)
        seen += _until(leader, None)
        assert process.wait(30) == 0
        os.close(leader)
    text = seen.decode(errors="replace")
    assert "breakeven watch, every" in text and "emitted tokens / all decode steps" in text
    assert "Traceback" not in text and text.rstrip().endswith("\x1b[?25h")


async def test_llama_cpp_that_drafts_is_read(tiny_model: Path, tmp_path: Path) -> None:
    settings = candidate_settings(LlamaSettings(threads=1, parallel=2, ctx_size=4096))
    async with EmbeddedServer() as server:
        url = await server.start(tiny_model, settings, "tiny", tmp_path / "engine.log")
        with asked(url, "aaaaaaaaaaaaaaaa", 200):
            done = await asyncio.to_thread(breakeven, "watch", url, "--once", "--json", "--interval", 2)
    found = done.succeeded().json()["servers"][0]
    assert found["engine"] == "llama.cpp" and found["model"] == "tiny"
    assert found["now"]["counters"]["drafts"] > 0
    assert found["now"]["speculation"]["drafted_tokens_per_draft"] > 0
    assert found["now"]["speculation"]["answer"] == "not derivable"


def _until(descriptor: int, wanted: bytes | None) -> bytes:
    """What a terminal shows until something wanted is there; or until it closes."""
    seen = b""
    while wanted is None or wanted not in seen:
        try:
            more = os.read(descriptor, 65_536)
        except OSError:
            break
        if not more:
            break
        seen += more
    return seen


class _Lines:
    """What a command prints, as it comes."""

    def __init__(self, command: Command) -> None:
        self._seen: list[str] = []
        self._errors: list[str] = []
        for stream, kept in ((command.process.stdout, self._seen), (command.process.stderr, self._errors)):
            threading.Thread(target=_keep, args=(stream, kept), daemon=True).start()
        self._from = 0

    def soon(self, is_it: Callable[[str], bool]) -> bool:
        """Whether a line comes, after those that were looked at, that is it."""

        def found() -> bool:
            new = self._seen[self._from :]
            hits = [place for place, line in enumerate(new) if is_it(line)]
            if hits:
                self._from += hits[0] + 1
            return bool(hits)

        return soon(found)

    def errors(self) -> list[str]:
        return self._errors


def _keep(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line)
