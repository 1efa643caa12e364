"""A real vLLM on this machine's CPU, for tests marked `vllm`: started, waited for, and always stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.command import soon

READY_S, STOPPED_S, LIFE_S = 300, 30, 3600
"""It is ready in 25 to 55 s on two cores. LIFE_S ends a server whose test was killed."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


@contextlib.contextmanager
def vllm_server(
    python: str,
    model: Path,
    speculative: Mapping[str, Any] | None,
    log: Path,
    max_model_len: int,
    *,
    dtype: str = "float32",
    log_interval_s: float = 10,
    more: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """The URL of a vLLM that serves one request at a time and reports speculation step by step.

    `python` is one that has vLLM; `speculative` is vLLM's --speculative-config, None for none; `more` are
    further flags, and `variables` further ones of its environment. Raises AssertionError with the end of its
    log if it does not come up.
    """
    port = free_port()
    words = (
        "timeout", "-k", "10", str(LIFE_S), python, "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(model), "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port),
        "--max-model-len", str(max_model_len), "--max-num-seqs", "1", "--dtype", dtype, "--enforce-eager",
        "--enable-per-request-metrics", *(_flags(speculative) if speculative else ()), *more,
    )  # fmt: skip
    env = {**os.environ, **OFFLINE, "VLLM_LOG_STATS_INTERVAL": str(log_interval_s), **(variables or {})}
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=env, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        came_up = soon(lambda: process.poll() is not None or _is_healthy(url), patience_s=READY_S)
        assert came_up and process.poll() is None, log.read_text(errors="replace")[-4000:]
        yield url
    finally:
        _stop(process)


def _flags(speculative: Mapping[str, Any]) -> tuple[str, ...]:
    counted = ("--per-request-spec-decode-metrics", "detailed")
    return *counted, "--speculative-config", json.dumps(speculative)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and what it started, which is all of one process group."""
    for number, patience_s in ((signal.SIGTERM, STOPPED_S), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if soon(lambda: process.poll() is not None and not _group_lives(process.pid), patience_s=patience_s):
            return
    raise AssertionError(f"process group {process.pid} outlived SIGKILL")


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _is_healthy(url: str) -> bool:
    time.sleep(0.5)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
