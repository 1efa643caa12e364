"""llama.cpp's drafters that learn against their twins: small alphabets, colliding tokens, text and code."""

from __future__ import annotations

import inspect
import random
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.base import Drafter, Limits
from breakeven.drafters.llamacpp_ngram_cache import LlamaNgramCache, NgramCacheSettings
from breakeven.drafters.llamacpp_ngram_map import (
    LlamaNgramMapK,
    LlamaNgramMapK4V,
    NgramMapK4VSettings,
    NgramMapKSettings,
)
from breakeven.drafters.llamacpp_ngram_mod import LlamaNgramMod, NgramModSettings
from breakeven.drafters.tokens import flat
from breakeven.replay.steps import accepted_of, step_through
from tests.oracle.llamacpp_twins import CacheTwin, MapTwin, ModTwin
from tests.oracle.plain_python import digest_in_plain_python

CONTEXTS = 50_000
ALPHABETS: Sequence[Sequence[int]] = (
    (0, 1),
    (0, 1, 2, 3),
    (1, 1 + 2**18, 2, 2 + 2**18),
    (5, 5 + 2**22, 6),
    range(10),
    range(60),
)
"""Tokens 2**18 apart fall into one bucket of the maps, those 2**22 apart into one slot of ngram-mod."""

Pair = tuple[Drafter[Any], Any]


def map_k(rng: random.Random) -> Pair:
    n, m = rng.randint(1, 4), rng.randint(1, 7)
    return LlamaNgramMapK(NgramMapKSettings(n, m)), MapTwin(n, m, None)


def map_k4v(rng: random.Random) -> Pair:
    n, m, hits = rng.randint(1, 4), rng.randint(1, 7), rng.randint(1, 3)
    return LlamaNgramMapK4V(NgramMapK4VSettings(n, m, hits)), MapTwin(n, m, hits)


def mod(rng: random.Random) -> Pair:
    n, low, high = rng.choice((1, 2, 3, 4, 24, 40)), rng.randint(0, 5), rng.randint(0, 8)
    return LlamaNgramMod(NgramModSettings(n, low, high)), ModTwin(n, low, high)


def cache(rng: random.Random) -> Pair:
    return LlamaNgramCache(NgramCacheSettings()), CacheTwin()


MAKERS = (map_k, map_k4v, mod, cache)


def repetitive(
    rng: random.Random, alphabet: Sequence[int], tokens: int, earlier: list[list[int]]
) -> list[int]:
    """Tokens of which most are copied, from the same sequence or from an earlier one."""
    found: list[int] = []
    while len(found) < tokens:
        source = found if rng.random() < 0.7 or not earlier else rng.choice(earlier)
        if source and rng.random() < 0.6:
            start = rng.randrange(len(source))
            found += source[start : start + rng.randint(1, 20)]
        else:
            found += rng.choices(alphabet, k=rng.randint(1, 3))
    return found[:tokens]


def conversation(rng: random.Random) -> list[tuple[list[int], list[int]]]:
    """Requests to one slot; a prompt may go on from an earlier request, wholly or in part."""
    alphabet = rng.choice(ALPHABETS)
    requests: list[tuple[list[int], list[int]]] = []
    earlier: list[list[int]] = []
    for _ in range(rng.randint(1, 6)):
        prompt = repetitive(rng, alphabet, rng.randint(1, rng.choice((5, 30, 200))), earlier)
        if earlier and rng.random() < 0.6:
            before = rng.choice(earlier)
            prompt = before[: rng.randint(0, len(before))] + prompt[:40]
        output = repetitive(rng, alphabet, rng.randint(1, rng.choice((10, 150))), [*earlier, prompt])
        requests.append((prompt, output))
        earlier.append(prompt + output)
    return requests


def alike(pair: Pair, requests: Sequence[tuple[list[int], list[int]]], rng: random.Random) -> tuple[int, int]:
    """Step through the requests with both; the number of contexts, and of those with a draft."""
    drafter, twin = pair
    contexts = drafts = 0
    for prompt, output in requests:
        ids, tokens = np.array(prompt + output, np.int32), prompt + output
        drafter.begin(ids[: len(prompt)], Limits())
        twin.begin(prompt)
        end = len(prompt) + 1
        while end < len(tokens):
            room = rng.choice((10**6, len(tokens) - end))
            draft = twin.propose(tokens[:end], room)
            assert list(drafter.propose(ids[:end], room)) == draft, (drafter.settings, requests, end)
            accepted = accepted_of(draft, tokens[end:])
            if draft:
                drafter.accept(accepted)
                twin.accept(accepted)
            contexts, drafts, end = contexts + 1, drafts + bool(draft), end + accepted + 1
    return contexts, drafts


@pytest.mark.parametrize("make", MAKERS)
def test_equal_on_small_alphabets(make: Callable[[random.Random], Pair]) -> None:
    contexts = drafts = seed = 0
    while contexts < CONTEXTS:
        rng = random.Random(seed)
        more = alike(make(rng), conversation(rng), rng)
        contexts, drafts, seed = contexts + more[0], drafts + more[1], seed + 1
    assert drafts > contexts / 20


@pytest.mark.parametrize("make", MAKERS)
def test_equal_on_text_and_code(make: Callable[[random.Random], Pair]) -> None:
    """Words of two modules of the standard library: prose and code, in requests that overlap."""
    words: dict[str, int] = {}
    pieces = [
        words.setdefault(word, len(words))
        for module in (textwrap, random)
        for word in inspect.getsource(module).split()
    ]
    requests = [(pieces[i : i + 400], pieces[i + 200 : i + 900]) for i in range(0, 4000, 700)]
    contexts = drafts = 0
    for seed in range(4):
        rng = random.Random(seed)
        more = alike(make(rng), requests, rng)
        contexts, drafts = contexts + more[0], drafts + more[1]
    assert contexts > 1000 and drafts > 0


def digest(name: str) -> list[list[int]]:
    """Drafted and accepted tokens of each step of some conversations."""
    make = next(make for make in MAKERS if make.__name__ == name)
    found = []
    for seed in range(30):
        rng = random.Random(seed)
        steps = step_through(make(rng)[0], flat(conversation(rng)), 1)
        found += [steps.drafted.tolist(), steps.accepted.tolist()]
    return found


@pytest.mark.parametrize("name", ["map_k", "map_k4v", "mod"])
def test_plain_python_gives_the_same(name: str) -> None:
    found = digest_in_plain_python(__name__, name)
    compiled = digest(name)
    assert found == compiled
    assert sum(map(sum, compiled)) > 0
