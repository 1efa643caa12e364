"""Replay against the real server: drafted and accepted tokens of each request, as llama.cpp counts them."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.engines.llamacpp import LlamaSettings
from breakeven.models.resolve import resolve
from breakeven.replay.steps import step_through
from breakeven.servers.embedded import PROBE, EmbeddedServer

DRAFTERS: Mapping[str, Mapping[str, int]] = {
    "llamacpp-ngram-simple": {"n": 3, "k": 7},
    "llamacpp-ngram-map-k": {"n": 2, "k": 4},
    "llamacpp-ngram-map-k4v": {"n": 2, "k": 4, "min_hits": 1},
    "llamacpp-ngram-mod": {"n": 3, "min_k": 1, "k": 6},
    "llamacpp-ngram-cache": {},
}
TEXTS = (
    "alpha alpha alpha alpha alpha",
    "a b c d a b c d a b c d a b c d",
    "for i in range(10):\n    print(i)\nfor j in range(10):\n    print(",
    "1 2 3 4 5 6 7 8 9 10 1 2 3 4 5 6 7 8 9",
)
TURNS = 4
"""Requests after those of TEXTS; each goes on where the answer before it stopped, as a chat does."""
LOOP = "One, two, three, four, five, six, one, two, three, four, five, six, one,"
"""The tiny model goes on with two tokens in turn."""
ONCE_WITH_END = "one two three four five<|im_end|>\n"


@dataclass(frozen=True)
class Answer:
    """One request as the server reports it."""

    prompt: list[int]
    output: list[int]
    """All tokens that were sampled, the one that ended it included."""
    max_tokens: int
    stop: str
    drafted: int
    accepted: int


class Client:
    """Asks one server with exact token ids and keeps every answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Answer] = []

    def tokens(self, text: str) -> list[int]:
        found: list[int] = self._call("/tokenize", {"content": text, "add_special": True})["tokens"]
        return found

    def context_tokens(self) -> int:
        return int(self._call("/props")["default_generation_settings"]["n_ctx"])

    def ask(self, prompt: list[int], max_tokens: int) -> Answer:
        body = {"prompt": prompt, "n_predict": max_tokens, "temperature": 0, "return_tokens": True}
        found = self._call("/completion", body)
        counted = found["timings"].get("draft_n", 0), found["timings"].get("draft_n_accepted", 0)
        answer = Answer(prompt, found["tokens"], max_tokens, found["stop_type"], *counted)
        self.answers.append(answer)
        return answer

    def _call(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=300) as response:
            answer: dict[str, Any] = json.load(response)
        return answer


def converse(client: Client, max_tokens: int) -> None:
    """Ask all TEXTS, then the turns of a chat whose last answers meet the end of a small context."""
    answers = [client.ask(client.tokens(text), max_tokens) for text in TEXTS]
    last = max(answers, key=lambda answer: len(answer.prompt) + len(answer.output))
    for turn in range(TURNS):
        more = client.tokens(f" again {turn}: print(i)")[1:]
        last = client.ask([*last.prompt, *last.output, *more], max_tokens)


async def served(model: Path, flags: str, folder: Path, ask: Any) -> tuple[list[Answer], int]:
    """The answers, that to the completion asked at the start first, and the context's size in tokens."""
    async with EmbeddedServer() as server:
        url = await server.start(model, LlamaSettings.parse(f"-t 1 {flags}"), "m", folder / "engine.log")
        client = Client(url)
        await asyncio.to_thread(ask, client)
        prompt = await asyncio.to_thread(client.tokens, PROBE["prompt"])
        first = await asyncio.to_thread(client.ask, prompt, PROBE["max_tokens"])
        size = await asyncio.to_thread(client.context_tokens)
    return [first, *client.answers[:-1]], size


def replayed(name: str, answers: Sequence[Answer], size: int) -> list[tuple[int, int]]:
    """Drafted and accepted tokens of each answer, from its tokens alone."""
    requests = [(answer.prompt, answer.output) for answer in answers]
    tokens = flat(requests, [answer.max_tokens for answer in answers], [size] * len(answers))
    steps = step_through(make_drafter(name, DRAFTERS[name]), tokens, 1)
    ends = np.cumsum(steps.counts)[:-1]
    found = []
    for r, at in enumerate(np.split(np.arange(len(steps.at)), ends)):
        output_tokens = int(tokens.positions[r + 1])
        hidden = ended_within(answers[r], output_tokens - steps.at[at], steps.drafted[at], steps.accepted[at])
        found.append((int(steps.drafted[at].sum()), int(steps.accepted[at].sum()) - hidden))
    return found


def ended_within(answer: Answer, left: Any, drafted: Any, accepted: Any) -> int:
    """1 if the token that ended the answer was drafted, with more after it, else 0.

    llama.cpp then stops to compare: that token counts as one that the step gives anyway, not as accepted.
    """
    if answer.stop != "eos" or not len(left):
        return 0
    return int(accepted[-1] == left[-1] and drafted[-1] > accepted[-1])


async def compare(name: str, model: Path, folder: Path, max_tokens: int) -> None:
    flags = make_drafter(name, DRAFTERS[name]).flags()
    answers, size = await served(model, flags, folder, lambda client: converse(client, max_tokens))
    server = [(answer.drafted, answer.accepted) for answer in answers][1:]
    replay = replayed(name, answers, size)[1:]
    print(f"{name}: server {server}, replay {replay}")
    assert len(server) == len(TEXTS) + TURNS
    assert replay == server
    assert sum(drafted for drafted, _ in server) > 0


@pytest.mark.parametrize("name", DRAFTERS)
async def test_replay_counts_what_the_server_counts(name: str, tiny_model: Path, tmp_path: Path) -> None:
    await compare(name, tiny_model, tmp_path, 80)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAFTERS)
async def test_replay_counts_what_the_server_counts_with_a_real_model(name: str, tmp_path: Path) -> None:
    await compare(name, resolve("smollm2"), tmp_path, 40)


async def test_a_drafted_end_of_text_counts_as_the_token_that_a_step_gives_anyway(tmp_path: Path) -> None:
    def ask(client: Client) -> None:
        client.ask(client.tokens(ONCE_WITH_END * 5 + "one two three"), 40)

    name = "llamacpp-ngram-map-k"
    flags = make_drafter(name, DRAFTERS[name]).flags()
    answers, size = await served(resolve("smollm2"), flags, tmp_path, ask)
    answer = answers[1]
    assert (answer.stop, len(answer.output)) == ("eos", 3)
    assert (answer.drafted, answer.accepted) == (4, 1)
    assert replayed(name, answers, size)[1] == (4, 1)


async def test_a_draft_that_fills_the_context_is_counted_whole_but_not_all_of_it_is_output(
    tiny_model: Path, tmp_path: Path
) -> None:
    def ask(client: Client) -> None:
        looped = client.ask(client.tokens(LOOP), 407)
        client.ask([*looped.prompt, *looped.output], 100)

    name = "llamacpp-ngram-mod"
    flags = make_drafter(name, DRAFTERS[name]).flags()
    answers, size = await served(tiny_model, flags, tmp_path, ask)
    whole, cut = answers[1:]
    assert (len(cut.prompt), len(cut.output), size) == (507, 2, 512)
    assert (cut.drafted, cut.accepted) == (3, 3)
    replay = replayed(name, answers, size)[1:]
    assert replay == [(whole.drafted, whole.accepted), (3, 1)]
