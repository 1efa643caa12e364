"""vllm-ngram, hf-prompt-lookup and llamacpp-ngram-simple against twins, and against the engines' own."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.base import Limits, TableDrafter
from breakeven.drafters.hf_prompt_lookup import HfPromptLookup, HfPromptLookupSettings
from breakeven.drafters.llamacpp_ngram_simple import LlamaNgramSimple, NgramSimpleSettings
from breakeven.drafters.tokens import UNLIMITED, Tokens, flat
from breakeven.drafters.vllm_ngram import VllmNgram, VllmNgramSettings
from breakeven.replay.steps import accepted_of
from tests.oracle import ngram_twin
from tests.oracle.plain_python import digest_in_plain_python
from tests.oracle.texts import requests_of

CONTEXTS = 50_000
PEER = Path(__file__).parent / "ngram_peer.py"


@dataclass(frozen=True)
class Place:
    """A context with what limits its draft."""

    context: list[int]
    prompt_tokens: int
    max_tokens: int
    max_model_len: int

    @property
    def total(self) -> int:
        """Tokens at which the request ends."""
        return min(self.max_model_len, self.prompt_tokens + self.max_tokens)


@dataclass(frozen=True)
class Kind:
    """A drafter, some settings of it, and its twin."""

    drafter: type[TableDrafter[Any]]
    settings: Callable[[random.Random], Any]
    twin: Callable[[Place, Any], list[int]]


def vllm_settings(rng: random.Random) -> VllmNgramSettings:
    least = rng.randint(1, 5)
    return VllmNgramSettings(k=rng.randint(1, 8), min_n=least, max_n=least + rng.choice((0, 0, 1, 2, 5, 30)))


def vllm_twin(at: Place, settings: VllmNgramSettings) -> list[int]:
    if not vllm_drafts(at, settings):
        return []
    return ngram_twin.vllm(at.context, *settings.n_range, settings.k, at.max_model_len - 1)


def vllm_drafts(at: Place, settings: VllmNgramSettings) -> bool:
    """vLLM's runner asks its drafter only where k tokens after the context, its last aside, fit the model."""
    return len(at.context) - 1 + settings.k <= at.max_model_len


def hf_settings(rng: random.Random) -> HfPromptLookupSettings:
    return HfPromptLookupSettings(rng.randint(1, 8), rng.randint(1, 5), rng.choice(("", "0", "1,3", "2")))


def hf_twin(at: Place, settings: HfPromptLookupSettings) -> list[int]:
    return ngram_twin.hugging_face(at.context, settings.max_n, settings.k, settings.eos, at.total)


def simple_settings(rng: random.Random) -> NgramSimpleSettings:
    return NgramSimpleSettings(rng.randint(1, 4), rng.randint(1, 7))


def simple_twin(at: Place, settings: NgramSimpleSettings) -> list[int]:
    room = at.total - len(at.context) - 1
    return ngram_twin.llama_simple(at.context, settings.n, settings.k, room)


KINDS = {
    "vllm-ngram": Kind(VllmNgram, vllm_settings, vllm_twin),
    "hf-prompt-lookup": Kind(HfPromptLookup, hf_settings, hf_twin),
    "llamacpp-ngram-simple": Kind(LlamaNgramSimple, simple_settings, simple_twin),
}


def small_alphabet(rng: random.Random) -> Tokens:
    """Requests of 2 to 4 symbols and 1 to 80 tokens, one or more of them output; some have known limits."""
    symbols = rng.randint(2, 4)
    requests = []
    limits: list[tuple[int | None, int | None]] = []
    for _ in range(40):
        prompt, output = rng.randint(0, 40), rng.randint(1, 40)
        ids = rng.choices(range(symbols), k=prompt + output)
        requests.append((ids[:prompt], ids[prompt:]))
        known = rng.random() < 0.5
        limits.append(
            (output + rng.randint(-2, 9), prompt + output + rng.randint(-2, 9)) if known else (None, None)
        )
    return flat(requests, *zip(*limits, strict=True))


def places(tokens: Tokens) -> list[tuple[int, Place, list[int]]]:
    """Each output position that has a context, that context, and the tokens that follow."""
    found = []
    i = 0
    limits = zip(tokens.max_tokens.tolist(), tokens.max_model_len.tolist(), strict=True)
    for (ids, prompt), (most, length) in zip(tokens.contexts(), limits, strict=True):
        for end in range(prompt, len(ids)):
            if end > 0:
                found.append((i, Place(ids[:end].tolist(), prompt, most, length), ids[end:].tolist()))
            i += 1
    return found


def compare(kind: Kind, tokens: Tokens, settings: Sequence[Any], rng: random.Random, proposals: float) -> int:
    """The tables at every position, and `propose` at some, must be the twin's; the number of drafts."""
    drafts = 0
    for one, table in zip(settings, kind.drafter.tables(tokens, settings), strict=True):
        drafter = kind.drafter(one)
        for i, at, following in places(tokens):
            draft = kind.twin(at, one)
            drafts += bool(draft)
            found = (table.drafted[i], table.accepted[i])
            assert found == (len(draft), accepted_of(draft, following)), (one, at)
            if rng.random() < proposals:
                assert proposed(drafter, at) == draft, (one, at)
    return drafts


def proposed(drafter: TableDrafter[Any], at: Place) -> list[int]:
    limits = Limits(
        None if at.max_tokens == UNLIMITED else at.max_tokens,
        None if at.max_model_len == UNLIMITED else at.max_model_len,
    )
    room = drafter.room(len(at.context), len(at.context) - at.prompt_tokens, limits)
    return list(drafter.propose(np.array(at.context, np.int32), room)) if room > 0 else []


@pytest.mark.parametrize("name", KINDS)
def test_equal_on_small_alphabets(name: str) -> None:
    kind = KINDS[name]
    contexts = drafts = seed = 0
    while contexts < CONTEXTS:
        rng = random.Random(seed)
        tokens = small_alphabet(rng)
        settings = [kind.settings(rng) for _ in range(3)]
        drafts += compare(kind, tokens, settings, rng, 0.05)
        contexts += len(settings) * len(places(tokens))
        seed += 1
    assert drafts > contexts / 20


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("text", ["text", "code"])
def test_equal_on_natural_requests(name: str, text: str) -> None:
    kind = KINDS[name]
    rng = random.Random(0)
    tokens = flat(requests_of(text, files=4, tokens=350))
    settings = [kind.settings(rng) for _ in range(3)]
    assert compare(kind, tokens, settings, rng, 0.2) > 0


@pytest.mark.parametrize("name", KINDS)
def test_equal_where_hashes_collide(name: str) -> None:
    """Hundreds of n-grams that differ in their first token alone, any number, so that some share a slot."""
    kind = KINDS[name]
    rng = random.Random(5)
    pool = [rng.randrange(2**31) for _ in range(250)]
    ids = [token for _ in range(400) for token in (rng.choice(pool), 7, 8, rng.randrange(3))]
    exact = {
        "vllm-ngram": VllmNgramSettings(k=4, min_n=1, max_n=5),
        "hf-prompt-lookup": HfPromptLookupSettings(max_n=3),
        "llamacpp-ngram-simple": NgramSimpleSettings(3, 4),
    }
    assert compare(kind, flat([(ids[:800], ids[800:])]), [exact[name]], rng, 0) > 100


@pytest.mark.parametrize("name", KINDS)
def test_one_by_one_is_all_at_once(name: str) -> None:
    kind = KINDS[name]
    rng = random.Random(1)
    tokens = small_alphabet(rng)
    settings = [kind.settings(rng) for _ in range(12)]
    for one, table in zip(settings, kind.drafter.tables(tokens, settings), strict=True):
        alone = kind.drafter(one).table(tokens)
        assert np.array_equal(alone.drafted, table.drafted)
        assert np.array_equal(alone.accepted, table.accepted)


def digest(name: str) -> list[list[int]]:
    """Weighted sums of some tables, which differ if the tables do."""
    kind = KINDS[name]
    rng = random.Random(2)
    tokens = flat([*requests_of("code", files=2, tokens=300), *requests_of("text", files=2, tokens=300)])
    sums = []
    for table in kind.drafter.tables(tokens, [kind.settings(rng) for _ in range(5)]):
        weights = np.random.default_rng(3).integers(1, 2**30, len(table.drafted))
        sums.append([int(weights @ table.drafted), int(weights @ table.accepted)])
    return sums


@pytest.mark.parametrize("name", KINDS)
def test_plain_python_gives_the_same(name: str) -> None:
    found = digest_in_plain_python(__name__, name)
    assert found == digest(name)


@pytest.mark.peers
@pytest.mark.skipif("BREAKEVEN_PEERS_PYTHON" not in os.environ, reason="BREAKEVEN_PEERS_PYTHON is not set")
@pytest.mark.parametrize("name", ["vllm-ngram", "hf-prompt-lookup"])
def test_equal_to_the_engine(name: str) -> None:
    """vLLM's compiled function and transformers' class, given the contexts of the tests above."""
    kind = KINDS[name]
    rng = random.Random(4)
    cases = []
    for tokens in (*(small_alphabet(rng) for _ in range(4)), flat(requests_of("code", files=2, tokens=250))):
        for one in (kind.settings(rng) for _ in range(5)):
            cases += [(at, one) for _, at, _ in places(tokens) if asks(at, one)]
    asked = [{"name": name, "context": at.context, **arguments(at, one)} for at, one in cases]
    answered = subprocess.run(
        [os.environ["BREAKEVEN_PEERS_PYTHON"], str(PEER)],
        input=json.dumps(asked),
        check=True,
        capture_output=True,
        text=True,
    )
    drafts = json.loads(answered.stdout.splitlines()[-1])
    for (at, one), draft in zip(cases, drafts, strict=True):
        assert proposed(kind.drafter(one), at) == draft, (one, at)
    print(f"{name}: {len(drafts)} contexts, {sum(map(bool, drafts))} drafts, all equal")


def asks(at: Place, settings: Any) -> bool:
    if isinstance(settings, VllmNgramSettings):
        return vllm_drafts(at, settings)
    return len(at.context) < at.total


def arguments(at: Place, settings: Any) -> dict[str, Any]:
    if isinstance(settings, VllmNgramSettings):
        least, most = settings.n_range
        return {"min_n": least, "max_n": most, "k": settings.k, "max_model_len": at.max_model_len - 1}
    return {"max_n": settings.max_n, "k": settings.k, "eos": settings.eos, "max_length": at.total}
