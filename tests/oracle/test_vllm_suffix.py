"""vllm-suffix against a twin with a node for every sequence, and against Arctic Inference's own tree."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from breakeven.drafters import _suffix_tree
from breakeven.drafters.base import Limits
from breakeven.drafters.tokens import flat
from breakeven.drafters.vllm_suffix import VllmSuffix, VllmSuffixSettings
from tests.oracle.plain_python import digest_in_plain_python
from tests.oracle.suffix_twin import SuffixTwin
from tests.oracle.texts import requests_of

CONTEXTS = 50_000
PEER = Path(__file__).parent / "suffix_peer.py"
Requests = list[tuple[list[int], list[int]]]


def random_settings(rng: random.Random) -> VllmSuffixSettings:
    return VllmSuffixSettings(
        k=rng.choice((1, 2, 3, 5, 10, 24)),
        max_tree_depth=rng.choice((1, 2, 3, 4, 5, 6, 8, 12, 24)),
        max_cached_requests=rng.choice((0, 1, 2, 3, 10000)),
        max_spec_factor=rng.choice((0.0, 0.5, 1.0, 1.0, 1.5, 4.0)),
        min_token_prob=rng.choice((0.0, 0.1, 0.1, 0.25, 0.5, 1 / 3, 1.0)),
    )


def random_requests(rng: random.Random) -> Requests:
    """Of 1 to 20 symbols; some outputs go on as a part of an earlier one."""
    symbols = range(rng.choice((1, 2, 2, 3, 4, 8, 20)))
    requests: Requests = []
    for _ in range(rng.randint(1, 8)):
        prompt, output = (
            rng.choices(symbols, k=rng.randint(0, 40)),
            rng.choices(symbols, k=rng.randint(1, 60)),
        )
        if requests and rng.random() < 0.4:
            earlier = rng.choice(requests)[1]
            begin = rng.randrange(len(earlier))
            output = output[: rng.randint(1, 20)] + earlier[begin : begin + 40]
        requests.append((prompt, output))
    return requests


def proposed(settings: VllmSuffixSettings, requests: Requests) -> Iterator[list[list[int]]]:
    """Each request's drafts before each output token."""
    drafter = VllmSuffix(settings)
    for prompt, output in requests:
        context = np.array(prompt + output, np.int32)
        drafter.begin(context[: len(prompt)], Limits())
        yield [list(drafter.propose(context[:end], 2**31 - 1)) for end in range(len(prompt), len(context))]
        drafter.end(context)


def as_table(requests: Requests, drafts: list[list[list[int]]]) -> list[tuple[int, int]]:
    """Drafted and accepted tokens at each output position."""
    rows = []
    for (_, output), of_request in zip(requests, drafts, strict=True):
        for at, draft in enumerate(of_request):
            right = 0
            while right < min(len(draft), len(output) - at) and draft[right] == output[at + right]:
                right += 1
            rows.append((len(draft), right))
    return rows


def check(settings: VllmSuffixSettings, requests: Requests) -> int:
    twin = SuffixTwin(settings)
    drafts = [twin.request(*request) for request in requests]
    assert list(proposed(settings, requests)) == drafts, (settings, requests)
    table = VllmSuffix(settings).table(flat(requests))
    rows = list(zip(table.drafted.tolist(), table.accepted.tolist(), strict=True))
    assert rows == as_table(requests, drafts), (settings, requests)
    return len(rows)


def test_equal_to_the_twin() -> None:
    rng, contexts = random.Random(0), 0
    while contexts < CONTEXTS:
        contexts += check(random_settings(rng), random_requests(rng))


def test_equal_to_the_twin_while_outputs_leave() -> None:
    """Nodes with many children whose counts rise and fall."""
    rng = random.Random(6)
    for _ in range(150):
        settings = VllmSuffixSettings(
            k=3,
            max_tree_depth=rng.choice((2, 3, 4)),
            max_cached_requests=rng.choice((1, 2, 3)),
            max_spec_factor=2.0,
            min_token_prob=0.0,
        )
        symbols = range(rng.choice((4, 8, 20)))
        outputs = [rng.choices(symbols, k=rng.randint(1, 60)) for _ in range(12)]
        check(settings, [([], output) for output in outputs])


def test_equal_to_the_twin_while_arrays_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_suffix_tree, "SMALLEST", 8)
    rng = random.Random(1)
    for _ in range(30):
        check(random_settings(rng), random_requests(rng))


@pytest.mark.parametrize("kind", ["text", "code"])
@pytest.mark.parametrize("max_cached_requests", [0, 2, 10000])
def test_equal_to_the_twin_on_natural_text_and_code(kind: str, max_cached_requests: int) -> None:
    settings = VllmSuffixSettings(max_cached_requests=max_cached_requests)
    assert check(settings, requests_of(kind, files=4, tokens=400)) > 500


def test_max_model_len_cuts_as_in_the_twin() -> None:
    rng = random.Random(2)
    for _ in range(50):
        settings, requests = random_settings(rng), random_requests(rng)
        lengths = [len(prompt) + rng.randint(0, len(output) + 5) for prompt, output in requests]
        table = VllmSuffix(settings).table(flat(requests, max_model_len=lengths))
        twin = SuffixTwin(settings)
        drafts = [twin.request(*request, length) for request, length in zip(requests, lengths, strict=True)]
        assert list(zip(table.drafted, table.accepted, strict=True)) == as_table(requests, drafts)


@pytest.mark.parametrize("skip_first", [False, True])
def test_stepped_visits_the_table_where_steps_fall(skip_first: bool) -> None:
    rng = random.Random(3)
    for _ in range(100):
        settings, requests = random_settings(rng), random_requests(rng)
        tokens = flat(requests)
        every, stepped = VllmSuffix(settings).table(tokens), VllmSuffix(settings).stepped(tokens, skip_first)
        visited = np.zeros(len(every.drafted), bool)
        for begin, end in zip(tokens.positions[:-1], tokens.positions[1:], strict=True):
            at = int(begin) + skip_first
            while at < end:
                visited[at] = True
                at += int(every.accepted[at]) + 1
        assert (stepped.drafted == every.drafted * visited).all()
        assert (stepped.accepted == every.accepted * visited).all()


def digest() -> list[tuple[int, int]]:
    rng = random.Random(4)
    rows = []
    for _ in range(12):
        settings, tokens = random_settings(rng), flat(random_requests(rng))
        table = VllmSuffix(settings).table(tokens)
        rows += zip(table.drafted.tolist(), table.accepted.tolist(), strict=True)
    return rows


def test_plain_python_gives_the_same() -> None:
    found = digest_in_plain_python(__name__)
    assert [tuple(row) for row in found] == digest()


@pytest.mark.peers
@pytest.mark.skipif("BREAKEVEN_PEERS_PYTHON" not in os.environ, reason="BREAKEVEN_PEERS_PYTHON is not set")
def test_equal_to_arctic_inference() -> None:
    """The drafted ids at each output position: small alphabets, code and text, with and without eviction."""
    rng = random.Random(5)
    tasks = [(random_settings(rng), random_requests(rng)) for _ in range(200)]
    for kind in ("code", "text"):
        for cached in (0, 1, 3, 10000):
            for k in (5, 24):
                settings = VllmSuffixSettings(k, max_cached_requests=cached)
                tasks.append((settings, requests_of(kind, files=6, tokens=1000)))
    asked = [{"settings": asdict(settings), "requests": requests} for settings, requests in tasks]
    answered = subprocess.run(
        [os.environ["BREAKEVEN_PEERS_PYTHON"], str(PEER)],
        input=json.dumps(asked),
        check=True,
        capture_output=True,
        text=True,
    )
    drafts = json.loads(answered.stdout.splitlines()[-1])
    for (settings, requests), expected in zip(tasks, drafts, strict=True):
        assert list(proposed(settings, requests)) == expected, (settings, requests)
    made = [draft for of_task in drafts for of_request in of_task for draft in of_request]
    print(f"{len(made)} contexts, {sum(map(bool, made))} drafts, {sum(map(len, made))} tokens, all equal")
