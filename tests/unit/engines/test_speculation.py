"""SpeculationConfig says what it is, and refuses what cannot be."""

from __future__ import annotations

import pytest

from breakeven.engines.speculation import GUARD_METHODS, METHODS, SpeculationConfig
from breakeven.engines.vllm_flags import GUARDS
from breakeven.errors import UsageError


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (SpeculationConfig("ngram", 5, 2, 4), "ngram, k 5, n-grams of 2 to 4 tokens"),
        (SpeculationConfig("ngram", None, 3, 3), "ngram, n-grams of 3 tokens"),
        (SpeculationConfig("ngram", 5, max_n=4), "ngram, k 5, n-grams up to 4 tokens"),
        (SpeculationConfig("eagle3", 3, draft="d", options={"a": 1}), "eagle3, k 3, draft d, a 1"),
    ],
)
def test_describe(config: SpeculationConfig, words: str) -> None:
    assert config.describe() == words


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"k": 0}, "k 0: give at least 1"), ({"min_n": 4, "max_n": 2}, "min_n 4 is above max_n 2")],
)
def test_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SpeculationConfig("ngram", **settings)


def test_the_guards_that_are_listed_are_those_that_vllm_loads() -> None:
    assert set(GUARD_METHODS) == set(GUARDS) <= set(METHODS)
    assert len(set(METHODS)) == len(METHODS)
