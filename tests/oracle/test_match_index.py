"""The longest match of a growing context, against one that looks at every earlier position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.drafters._ngram_tables import first_occurrences
from breakeven.drafters.tokens import flat
from breakeven.guard import match_index
from breakeven.guard.match_index import LongestMatch

LEAST, MOST = 2, 6


def longest(context: list[int], least: int, most: int) -> tuple[int, int]:
    """Tokens of the longest run of last tokens that ended before, at most `most`, and where it did first."""
    for length in range(min(most, len(context) - 1), least - 1, -1):
        for end in range(length, len(context)):
            if context[end - length : end] == context[-length:]:
                return length, end
    return 0, 0


def grown(context: list[int], parts: list[int], least: int = LEAST, most: int = MOST) -> LongestMatch:
    """Appended in parts of these sizes, the rest at once."""
    index, at = LongestMatch(least, most), 0
    for size in (*parts, len(context)):
        index.append(np.array(context[at : at + size], np.int32))
        at = min(at + size, len(context))
    return index


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 3), max_size=60),
    st.lists(st.integers(0, 7), max_size=8),
    st.integers(1, 4),
    st.integers(0, 6),
)
def test_it_finds_what_looking_everywhere_finds(
    context: list[int], parts: list[int], least: int, k: int
) -> None:
    found = grown(context, parts, least).match(k)
    length, end = longest(context, least, MOST)
    assert found.length == length
    assert found.draft.tolist() == (context[end : end + k] if length else [])
    assert found.period == (len(context) - end if length else 0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=80), st.integers(0, 40))
def test_every_context_on_the_way_has_its_own(context: list[int], at_once: int) -> None:
    index = LongestMatch(LEAST, MOST)
    index.append(np.array(context[:at_once], np.int32))
    for end in range(min(at_once, len(context)), len(context)):
        index.append(np.array(context[end : end + 1], np.int32))
        assert index.match(1).length == longest(context[: end + 1], LEAST, MOST)[0]


def test_growing_beyond_its_place_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    context = np.random.default_rng(5).integers(0, 4, 300).tolist()
    roomy = grown(context, [])
    monkeypatch.setattr(match_index, "LEAST_TOKENS", 4)
    tight = grown(context, [1] * 250)
    assert len(tight.buffer) == 512 and len(roomy.buffer) == 1024
    assert tight.tokens.tolist() == roomy.tokens.tolist() == context
    for one in (roomy, tight):
        one.append(np.array(context[40:60], np.int32))
    a, b = tight.match(10), roomy.match(10)
    assert (a.length, a.period, a.draft.tolist()) == (b.length, b.period, b.draft.tolist())
    assert a.length == MOST


def test_it_is_replays_first_occurrence() -> None:
    ids = np.random.default_rng(2).integers(0, 5, 400).astype(np.int32)
    tokens = flat([(ids[:100], ids[100:])])
    lookups = first_occurrences(tokens, LEAST, [MOST], 10)
    index = LongestMatch(LEAST, MOST)
    index.append(ids[:100])
    for position in range(300):
        found = index.match(10)
        long_enough = lookups.length[position] >= LEAST
        assert found.length == (lookups.length[position] if long_enough else 0)
        assert found.period == (lookups.reach[0, position] if long_enough else 0)
        index.append(ids[100 + position : 101 + position])
