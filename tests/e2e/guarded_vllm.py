"""A real vLLM with the guard in it, and what tests ask of it."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import breakeven
from breakeven.guard.config import CONFIG
from tests.e2e.tiny_qwen import BYTE_0, PRINTABLE
from tests.e2e.vllm_server import free_port, vllm_server

SOURCES = Path(breakeven.__file__).parents[1]
K = 10
GUARD = {
    "method": "custom_class",
    "model": "breakeven.guard.vllm.GuardedNgram",
    "num_speculative_tokens": K,
}
STOCK = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
ROOM = 1024
FREE = range(0x20, 0x60)
"""Bytes of the text that has nothing to copy, in models of write_small_qwen."""


def lacks(python: str) -> str:
    """What keeps this Python from having the guard; empty for nothing."""
    words = (python, "-c", "import breakeven.guard.metrics, vllm.version")
    env = {**os.environ, "PYTHONPATH": _path(())}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def skip_without_guard(python: str) -> None:
    """For tests that this Python serves."""
    missing = lacks(python)
    if missing:
        pytest.skip(f"{python} cannot import the guard ({missing}): install breakeven's dependencies there")


def _path(folders: Sequence[Path]) -> str:
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([*map(str, folders), str(SOURCES), *([given] if given else [])])


@dataclass(frozen=True)
class Prompt:
    """Token ids, and how many to answer."""

    ids: tuple[int, ...]
    tokens: int


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    log: Path
    metrics_url: str

    def reply(self, prompt: Prompt) -> tuple[int, ...]:
        """The greedy answer, in ids."""
        body = {
            "model": "tiny",
            "prompt": list(prompt.ids),
            "max_tokens": prompt.tokens,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        answer = json.loads(_fetched(f"{self.url}/v1/completions", json.dumps(body).encode()))
        return tuple(answer["choices"][0]["token_ids"])

    def replies(self, prompts: Sequence[Prompt], concurrency: int) -> list[tuple[int, ...]]:
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(self.reply, prompts))

    def guard(self) -> dict[str, float]:
        """The guard's metrics, labels and all."""
        return _page(_fetched(self.metrics_url))

    def vllm(self, name: str) -> float:
        """The sum of one of vLLM's own counters."""
        page = _page(_fetched(f"{self.url}/metrics"))
        return sum(value for key, value in page.items() if key.split("{")[0] == name)


@contextmanager
def serving(
    python: str,
    model: Path,
    speculative: Mapping[str, Any] | None,
    log: Path,
    *,
    config: Mapping[str, Any] | None = None,
    more: Sequence[str] = (),
    folders: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """`config` is of the guard; `folders` have further modules for the server's Python."""
    port = free_port()
    given = {"metrics_port": port, **(config or {})}
    env = {CONFIG: json.dumps(given), "PYTHONPATH": _path(folders), **(variables or {})}
    with vllm_server(python, model, speculative, log, ROOM, more=more, variables=env) as url:
        yield Served(url, log, f"http://127.0.0.1:{port}/metrics")


def mixed_prompts(count: int, most_tokens: int, seed: int = 3) -> list[Prompt]:
    """In turn one that repeats a phrase, and one of FREE bytes that repeats nothing; of all lengths."""
    random = Random(seed)
    copied = [byte for byte in PRINTABLE if byte not in FREE]
    made = []
    for i in range(count):
        among, times = (copied, 4) if i % 2 == 0 else (FREE, 1)
        letters = [BYTE_0 + random.choice(among) for _ in range(random.randint(20, 60))]
        made.append(Prompt(tuple(letters * times), random.randint(most_tokens // 3, most_tokens)))
    return made


def _fetched(url: str, body: bytes | None = None) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    with opener.open(request, timeout=300) as response:
        text: str = response.read().decode()
    return text


def _page(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
