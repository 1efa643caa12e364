"""EmbeddedServer on a tiny model: real processes, started, crashed, interrupted and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.engines.llamacpp import LlamaSettings, NgramLookup
from breakeven.engines.llamacpp_flags import SPEC_TYPES
from breakeven.errors import ServerError, StorageError
from breakeven.models.upcycle import upcycle
from breakeven.servers.embedded import EmbeddedServer

ONE_THREAD = LlamaSettings(threads=1, ctx_size=512)
PATIENCE_S = 30.0


def ask(url: str, prompt: str = "abcabcabcabc", max_tokens: int = 24) -> dict[str, Any]:
    body = json.dumps({"model": "tiny", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0})
    request = urllib.request.Request(  # noqa: S310
        f"{url}/v1/completions", body.encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not yet collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text() if sys.platform == "linux" else ""
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    return not stat or stat.rpartition(")")[2].split()[0] != "Z"


def soon(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.02)
    return False


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110  there is no event for it
            await asyncio.sleep(0.001)


async def test_it_is_ready_when_start_returns_and_gone_after_stop(tiny_model: Path, tmp_path: Path) -> None:
    async with EmbeddedServer() as server:
        assert server.pid is None and server.reload_s is None
        url = await server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "logs/engine.log")
        assert url == server.url and url.startswith("http://127.0.0.1:")
        answer = await asyncio.to_thread(ask, url)
        assert answer["model"] == "tiny" and answer["usage"]["completion_tokens"] == 24
        assert server.reload_s is not None and server.reload_s > 0
        pid = server.pid
        assert pid is not None and alive(pid) and os.getsid(pid) == pid
        assert server.failure() is None
        with pytest.raises(ServerError, match="already started"):
            await server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log")
    assert not alive(pid)
    assert server.failure() is None
    await server.stop()
    assert "model loaded" in (tmp_path / "logs/engine.log").read_text()


async def test_llama_cpps_words_stay_off_the_terminal(tiny_model: Path, tmp_path: Path, capfd: Any) -> None:
    async with EmbeddedServer() as server:
        await server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log")
    assert capfd.readouterr() == ("", "")


async def test_two_are_alive_at_once_and_answer_in_turn(tiny_model: Path, tmp_path: Path) -> None:
    sizes = NgramLookup(2, 3)
    speculating = replace(ONE_THREAD, spec_types=("ngram-simple",), ngram_simple=sizes)
    async with EmbeddedServer() as one, EmbeddedServer() as two:
        urls = await asyncio.gather(
            one.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "1.log"),
            two.start(tiny_model, speculating, "tiny", tmp_path / "2.log"),
        )
        assert urls[0] != urls[1] and one.pid != two.pid
        answers = [await asyncio.to_thread(ask, url, "abcabcabcabc", 64) for url in urls * 2]
    assert len({answer["choices"][0]["text"] for answer in answers}) == 1
    assert ["draft_n" in answer["timings"] for answer in answers] == [False, True] * 2


@pytest.mark.parametrize("spec_type", SPEC_TYPES[1:])
async def test_every_drafter_starts(tiny_model: Path, tmp_path: Path, spec_type: str) -> None:
    settings = LlamaSettings.parse(f"-t 1 -c 512 -fa on -ctk q8_0 -cram 0 --spec-type {spec_type}")
    async with EmbeddedServer() as server:
        await server.start(tiny_model, settings, "tiny", tmp_path / "engine.log")


@pytest.mark.parametrize(("experts", "top_k"), [(1, 1), (4, 1), (5, 5)])
async def test_an_upcycled_model_says_what_the_dense_one_says(
    tiny_model: Path, tmp_path: Path, experts: int, top_k: int
) -> None:
    moe = upcycle(tiny_model, tmp_path / "moe.gguf", experts, top_k)
    async with EmbeddedServer() as dense_server, EmbeddedServer() as moe_server:
        dense_url = await dense_server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "1.log")
        moe_url = await moe_server.start(moe, ONE_THREAD, "tiny", tmp_path / "2.log")
        dense_text = (await asyncio.to_thread(ask, dense_url))["choices"][0]["text"]
        moe_text = (await asyncio.to_thread(ask, moe_url))["choices"][0]["text"]
    assert dense_text == moe_text


@pytest.mark.parametrize("content", [b"not a model", b"", b"GGUF\x03\x00\x00\x00"])
async def test_a_broken_model_is_an_error_with_the_end_of_the_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    server = EmbeddedServer()
    with pytest.raises(ServerError) as caught:
        await server.start(tmp_path / "bad.gguf", ONE_THREAD, "bad", tmp_path / "engine.log")
    message = str(caught.value)
    assert "bad.gguf" in message and "engine.log" in message and "failed to load model" in message
    assert server.pid is not None and not alive(server.pid)


@pytest.fixture
def cut_model(tiny_model: Path, tmp_path: Path) -> Path:
    whole = tiny_model.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    return tmp_path / "cut.gguf"


async def test_a_cut_model_is_an_error(cut_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"cut\.gguf"):
        await EmbeddedServer().start(cut_model, ONE_THREAD, "cut", tmp_path / "engine.log")


async def test_the_log_of_an_earlier_start_is_kept_and_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("an earlier start\n")
    with pytest.raises(ServerError) as caught:
        await EmbeddedServer().start(tmp_path / "absent.gguf", ONE_THREAD, "m", tmp_path / "engine.log")
    assert "an earlier start" not in str(caught.value)
    assert (tmp_path / "engine.log").read_text().startswith("an earlier start\n")


async def test_a_crash_names_the_signal(tiny_model: Path, tmp_path: Path) -> None:
    async with EmbeddedServer() as server:
        await server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSEGV)
        await until(lambda: server.failure() is not None)
        assert "was killed by SIGSEGV; the end of its log" in (server.failure() or "")
    assert "SIGSEGV" in (server.failure() or "")


async def test_a_crash_while_starting_names_the_signal(tiny_model: Path, tmp_path: Path) -> None:
    server = EmbeddedServer()
    start = asyncio.ensure_future(server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log"))
    await until(lambda: server.pid is not None)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSEGV)
    with pytest.raises(ServerError, match="was killed by SIGSEGV"):
        await start


async def test_a_start_that_takes_too_long_is_ended(tiny_model: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(start_timeout_s=0.001)
    with pytest.raises(ServerError, match=r"within 0\.001 s"):
        await server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log")
    assert server.pid is not None and not alive(server.pid)


async def test_a_cancelled_start_leaves_nothing(tiny_model: Path, tmp_path: Path) -> None:
    server = EmbeddedServer()
    start = asyncio.ensure_future(server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log"))
    await until(lambda: server.pid is not None)
    assert server.pid is not None
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not alive(server.pid)


async def test_a_child_that_ignores_its_stdin_and_sigterm_is_killed(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("breakeven.servers.embedded.STOP_TIMEOUT_S", 0.2)
    server = EmbeddedServer()
    await server.start(tiny_model, ONE_THREAD, "tiny", tmp_path / "engine.log")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    await server.stop()
    assert not alive(server.pid)


async def test_a_log_that_cannot_be_written_is_a_storage_error(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write the engine's log"):
        await EmbeddedServer().start(tiny_model, ONE_THREAD, "tiny", tmp_path / "file/engine.log")


PARENT = """
import asyncio, sys, urllib.request
from pathlib import Path
from breakeven.engines.llamacpp import LlamaSettings
from breakeven.servers.embedded import EmbeddedServer

async def main():
    async with EmbeddedServer() as server:
        url = await server.start(Path(sys.argv[1]), LlamaSettings(threads=1), "tiny", Path(sys.argv[2]))
        print(server.pid, flush=True)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print(urllib.request.urlopen(url + "/health").status, flush=True)
            raise

asyncio.run(main())
"""


def start_parent(model: Path, log: Path) -> tuple[subprocess.Popen[str], int]:
    """A parent in a process group of its own, as a shell would start it, and the pid of its server."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(model), str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        process_group=0,
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def test_the_child_ends_when_its_parent_is_killed(tiny_model: Path, tmp_path: Path) -> None:
    parent, child = start_parent(tiny_model, tmp_path / "engine.log")
    assert alive(child)
    parent.kill()
    parent.communicate()
    assert soon(lambda: not alive(child))


def test_ctrl_c_reaches_the_parent_which_can_still_ask_and_then_stops_it(
    tiny_model: Path, tmp_path: Path
) -> None:
    parent, child = start_parent(tiny_model, tmp_path / "engine.log")
    os.killpg(parent.pid, signal.SIGINT)
    said, _ = parent.communicate(timeout=PATIENCE_S)
    assert said == "200\n"
    assert soon(lambda: not alive(child))


def test_a_child_whose_parent_is_gone_already_does_not_stay() -> None:
    """Its stdin stays open, and the process that it is told to live with is not its parent."""
    child = subprocess.Popen(
        [sys.executable, "-m", "breakeven.servers.embedded_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps({"model": "m", "name": "m", "flags": "", "parent_pid": 1}).encode() + b"\n")
    child.stdin.flush()
    assert child.wait(PATIENCE_S) == 0
    child.stdin.close()


def test_the_end_of_stdin_alone_ends_the_child(tiny_model: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "breakeven.servers.embedded_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None and child.stdout is not None
    config = {"model": str(tiny_model), "name": "m", "flags": "-t 1 -c 512", "parent_pid": os.getpid()}
    child.stdin.write(json.dumps(config).encode() + b"\n")
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["url"].startswith("http://127.0.0.1:")
    child.stdin.close()
    assert child.wait(PATIENCE_S) == 0
    child.stdout.close()
