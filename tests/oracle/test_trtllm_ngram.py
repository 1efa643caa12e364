"""TensorRT-LLM's NGram against a twin that keeps plain lists, and walks them while it removes from them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from breakeven.drafters.base import Limits
from breakeven.drafters.trtllm_ngram import TrtllmNgram, TrtllmNgramSettings
from breakeven.replay.steps import accepted_of
from tests.oracle.texts import requests_of

Request = tuple[list[int], list[int]]


class Twin:
    def __init__(self, settings: TrtllmNgramSettings) -> None:
        self.settings = settings
        self.pool: dict[tuple[int, ...], list[list[int]]] = {}

    def begin(self) -> None:
        self.start = 0
        if not self.settings.is_public_pool:
            self.pool.clear()

    def step(self, context: list[int], room: int) -> list[int]:
        k, n = self.settings.k, self.settings.max_n
        if room <= 0:
            return []
        sizes = [size for size in range(n, 0, -1) if size < len(context)]
        for size in sizes:
            for begin in range(self.start, len(context) - size):
                end = begin + size
                self.file(tuple(context[begin:end]), context[end : end + k])
        self.start = max(0, len(context) - (k + n - 1))
        draft: list[int] = []
        known = [tuple(context[-size:]) for size in sizes if tuple(context[-size:]) in self.pool]
        if known:
            draft = self.pool[known[0]][0 if self.settings.is_use_oldest else -1]
        padding = [0] * (k - len(draft)) if self.settings.padding else []
        return (draft + padding)[:room]

    def file(self, ngram: tuple[int, ...], new: list[int]) -> None:
        kept = self.pool.setdefault(ngram, [])
        if kept and not self.settings.is_keep_all and len(new) > len(kept[0]):
            kept.clear()
        if new in kept:
            return
        i = 0
        while i < len(kept):
            if len(kept[i]) < len(new):
                del kept[i]
            i += 1
        kept.append(new)


def contexts_compared(settings: TrtllmNgramSettings, requests: Sequence[Request], rng: random.Random) -> int:
    """Steps of the accepted length, or of any length: where continuations are cut follows from them."""
    drafter, twin = TrtllmNgram(settings), Twin(settings)
    compared, follow = 0, rng.random() < 0.5
    for prompt, output in requests:
        ids = np.array(prompt + output, np.int32)
        limits = Limits(max_tokens=len(output) + rng.choice([0, 1, 99]))
        drafter.begin(ids[: len(prompt)], limits)
        twin.begin()
        end = len(prompt) + 1
        while end < len(ids):
            room = drafter.room(end, end - len(prompt), limits)
            draft = drafter.propose(ids[:end], room)
            assert draft == twin.step(ids[:end].tolist(), room), (settings, ids[:end].tolist())
            end += 1 + (accepted_of(draft, ids[end:]) if follow else rng.randrange(6))
            compared += 1
        drafter.end(ids)
    return compared


def any_settings(rng: random.Random) -> TrtllmNgramSettings:
    flags = [rng.random() < 0.5 for _ in range(4)]
    return TrtllmNgramSettings(rng.choice([1, 2, 3, 4, 8]), rng.randint(1, 5), *flags)


def any_requests(rng: random.Random) -> list[Request]:
    letters = rng.choice([1, 2, 3, 5, 12])

    def some(most: int) -> list[int]:
        return [rng.randrange(letters) for _ in range(rng.randint(1, most))]

    return [(some(40), some(120)) for _ in range(rng.randint(1, 10))]


def test_small_alphabets():
    rng = random.Random("trtllm")
    compared = 0
    while compared < 50_000:
        compared += contexts_compared(any_settings(rng), any_requests(rng), rng)


@pytest.mark.parametrize("kind", ["text", "code"])
@pytest.mark.parametrize(
    "settings",
    [TrtllmNgramSettings(), TrtllmNgramSettings(6, 4, is_use_oldest=False), TrtllmNgramSettings(5, 3, False)],
)
def test_text_and_code(kind: str, settings: TrtllmNgramSettings):
    requests = requests_of(kind, files=5, tokens=1500)
    assert contexts_compared(settings, requests, random.Random(1)) > 500
