"""A request of 200,000 tokens whose second half is its first half again, no token of which repeats.

So what each drafter finds is known: at every output position but the first, the last tokens stood exactly
HALF tokens before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.compiler import COMPILED
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import Tokens, flat
from breakeven.replay.steps import table_of

HALF = 100_000
WHOLE = 2 * HALF
DEPTH = 24

pytestmark = pytest.mark.skipif(not COMPILED, reason="plain Python takes minutes")


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    half = np.random.default_rng(0).permutation(HALF).astype(np.int32)
    return flat([(half, half)])


def expected(name: str, left: np.ndarray) -> np.ndarray:
    """Tokens drafted at each output position, where so many tokens are left."""
    at = np.arange(HALF)
    if name == "oracle":
        return left
    if name == "vllm-suffix":  # a match of m tokens drafts m, and both together are DEPTH at most
        return np.minimum(at, DEPTH // 2)
    if name == "llamacpp-ngram-simple":  # an occurrence at the first token does not count
        return np.where(at > 12, 1024, 0)
    return np.where(at > 0, HALF, 0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vllm-ngram", {"k": WHOLE, "min_n": 1, "max_n": 7}),
        ("vllm-suffix", {"k": WHOLE, "max_tree_depth": DEPTH}),
        ("hf-prompt-lookup", {"k": WHOLE}),
        ("llamacpp-ngram-simple", {"n": 12, "k": 1024}),
        ("oracle", {"k": WHOLE}),
    ],
)
def test_a_long_request_is_replayed_exactly(name: str, settings: Mapping[str, Any], tokens: Tokens) -> None:
    table = table_of(make_drafter(name, settings), tokens)
    left = np.arange(HALF, 0, -1)
    drafted = expected(name, left)
    assert np.array_equal(table.drafted, drafted)
    assert np.array_equal(table.accepted, np.minimum(drafted, left))
