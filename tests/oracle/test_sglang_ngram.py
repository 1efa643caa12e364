"""SGLang's NGRAM against its twin and against SGLang's own trie: small alphabets, where ties are common and
nodes are forgotten, text and code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from ctypes import CDLL

import numpy as np
import pytest

from breakeven.drafters.base import Limits, Tree
from breakeven.drafters.sglang_ngram import SglangNgram, SglangNgramSettings
from breakeven.replay.steps import accepted_of
from tests.oracle.sglang_peer import SglangPeer, compiled
from tests.oracle.sglang_twin import SglangTwin
from tests.oracle.texts import requests_of

Request = tuple[list[int], list[int]]


def paths(draft: Tree) -> list[tuple[int, ...]]:
    """Each node's tokens from the context's end."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(draft.tokens, draft.parents, strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return sorted(found)


def contexts_compared(
    settings: SglangNgramSettings,
    twin: SglangTwin | SglangPeer,
    requests: Sequence[Request],
    rng: random.Random,
) -> int:
    """Steps of the accepted length, or of any length: what was inserted when follows from them."""
    drafter = SglangNgram(settings)
    compared, follow = 0, rng.random() < 0.5
    for prompt, output in requests:
        ids = np.array(prompt + output, np.int32)
        drafter.begin(ids[: len(prompt)], Limits())
        twin.begin()
        end = len(prompt) + 1
        while end < len(ids):
            draft = drafter.propose(ids[:end], 2**31 - 1)
            assert paths(draft) == twin.step(ids[:end].tolist()), (settings, ids[:end].tolist())
            end += 1 + (accepted_of(draft, ids[end:]) if follow else rng.randrange(6))
            compared += 1
        drafter.end(ids)
        twin.insert(ids[-settings.max_trie_depth :].tolist())
    return compared


def any_settings(match_type: str, rng: random.Random) -> SglangNgramSettings:
    depth, widest = rng.choice([2, 3, 4, 5, 2, 3, 4, 5, 7, 18]), rng.randint(1, 10)
    return SglangNgramSettings(
        k=rng.choice([0, 1, 4, 11, 24]),
        match_type=match_type,
        min_bfs_breadth=rng.randint(1, widest),
        max_bfs_breadth=widest,
        max_trie_depth=depth,
        capacity=rng.choice([depth + 1, depth + 9, 60, 10**6]),
    )


def any_requests(rng: random.Random) -> list[Request]:
    letters, first = rng.choice([1, 2, 3, 5, 12]), rng.choice([0, 1])

    def some(most: int) -> list[int]:
        return [rng.randrange(letters) + first for _ in range(rng.randint(1, most))]

    return [(some(30), some(100)) for _ in range(rng.randint(1, 8))]


@pytest.mark.parametrize("match_type", ["BFS", "PROB"])
def test_small_alphabets(match_type: str):
    rng = random.Random(f"sglang {match_type}")
    compared = 0
    while compared < 50_000:
        settings = any_settings(match_type, rng)
        compared += contexts_compared(settings, SglangTwin(settings), any_requests(rng), rng)


@pytest.mark.parametrize("match_type", ["BFS", "PROB"])
@pytest.mark.parametrize("kind", ["text", "code"])
@pytest.mark.parametrize("capacity", [10_000_000, 500])
def test_text_and_code(match_type: str, kind: str, capacity: int):
    settings = SglangNgramSettings(match_type=match_type, capacity=capacity)
    requests = requests_of(kind, files=4, tokens=700)
    assert contexts_compared(settings, SglangTwin(settings), requests, random.Random(1)) > 500


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    found = compiled(tmp_path_factory.mktemp("sglang"))
    if found is None:
        pytest.skip("needs a C++ compiler, and BREAKEVEN_PEERS_PYTHON to name a Python with SGLang")
    return found


@pytest.mark.peers
@pytest.mark.parametrize("match_type", ["BFS", "PROB"])
def test_the_trie_of_sglang_itself(match_type: str, library: CDLL):
    rng = random.Random(f"peer {match_type}")
    compared = 0
    while compared < 50_000:
        settings = any_settings(match_type, rng)
        compared += contexts_compared(settings, SglangPeer(library, settings), any_requests(rng), rng)
    for kind in ("text", "code"):
        settings = SglangNgramSettings(match_type=match_type)
        requests = requests_of(kind, files=20, tokens=5000)
        contexts_compared(settings, SglangPeer(library, settings), requests, rng)
