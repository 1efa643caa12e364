"""What the logs of two starts tell apart, and that a log which never ends, or never comes, is no trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from breakeven.engines.vllm import Vllm
from breakeven.errors import ServerError
from breakeven.servers.fake.lifecycle import FakeLifecycle
from breakeven.servers.lifecycle import State
from breakeven.trial import confounded
from breakeven.trial.confounded import between_sides, between_starts, log_facts

LINES = [
    "Initializing a V1 LLM engine (v0.32.0)",
    "Asynchronous scheduling is enabled.",
    "KV cache size: 61,440 tokens",
]
FACTS = {"version": "0.32.0", "async_scheduling": "on", "kv_cache_tokens": "61440"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confounded, "QUIET_S", 0.2)


class Endless(FakeLifecycle):
    """Tells its start, and then a line for each request, without end."""

    async def logs(self) -> AsyncIterator[str]:
        for line in LINES:
            yield line
        while True:
            yield "POST /v1/chat/completions 200 OK"
            await asyncio.sleep(0)


class Unreadable(FakeLifecycle):
    async def logs(self) -> AsyncIterator[str]:
        yield LINES[0]
        raise ServerError("no permission")


async def test_facts_of_a_server_that_runs_and_is_quiet():
    assert await log_facts(FakeLifecycle(lines=list(LINES)), Vllm()) == FACTS


async def test_facts_of_a_server_that_has_ended():
    assert await log_facts(FakeLifecycle(State("stopped"), list(LINES)), Vllm()) == FACTS


async def test_facts_of_a_server_that_never_is_quiet(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(confounded, "MOST_LINES", 500)
    assert await log_facts(Endless(), Vllm()) == FACTS
    monkeypatch.setattr(confounded, "MOST_LINES", 10**9)
    monkeypatch.setattr(confounded, "MOST_S", 1.0)
    assert await log_facts(Endless(), Vllm()) == FACTS


async def test_a_log_that_cannot_be_read_to_its_end_tells_what_it_told():
    assert await log_facts(Unreadable(), Vllm()) == {"version": "0.32.0"}


def test_only_what_differs_is_listed():
    assert between_sides(FACTS, FACTS) == ()
    assert between_sides(FACTS, {**FACTS, "async_scheduling": "off"}) == (
        "the sides' logs differ in asynchronous scheduling: on → off",
    )


def test_what_only_one_log_tells_is_not_taken_for_alike():
    assert between_sides(FACTS, {"version": "0.32.0", "kv_cache_tokens": "61440"}) == (
        "the sides' logs differ in asynchronous scheduling: on → not said",
    )


def test_a_side_without_a_log_is_said_once():
    (sentence,) = between_sides({}, FACTS)
    assert "baseline's log tells nothing" in sentence
    assert between_sides({}, {}) == ()


def test_starts_of_the_baseline():
    assert between_starts(FACTS, {**FACTS, "kv_cache_tokens": "60000"}) == (
        "the baseline came back with other tokens in the KV cache: 61440 → 60000",
    )
    assert between_starts(FACTS, {}) == ()
