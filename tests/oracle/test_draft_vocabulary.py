"""The draft vocabulary against a twin that counts one token at a time."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.data.collect import count_ids
from breakeven.eagle.data.samples import Sample
from breakeven.eagle.data.vocabulary import choose

TARGET = 12
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["train", "held_out"]),
        st.lists(st.tuples(st.integers(0, TARGET - 1), st.booleans()), min_size=1),
    ),
    max_size=8,
)


def twin(
    rows: list[tuple[str, list[tuple[int, bool]]]], size: int, always: set[int]
) -> tuple[list[int], float]:
    """Draft ids and coverage, by the definition."""
    seen = Counter(token for split, pairs in rows if split == "train" for token, learned in pairs if learned)
    chosen = set(always)
    for token in sorted(range(TARGET), key=lambda one: (-seen[one], one)):
        if len(chosen) == size:
            break
        chosen.add(token)
    return sorted(chosen), sum(seen[one] for one in chosen) / seen.total() if seen else 0.0


@given(ROWS, st.integers(3, TARGET - 1), st.sets(st.integers(0, TARGET - 1), max_size=3))
def test_a_map_is_that_of_its_twin(
    rows: list[tuple[str, list[tuple[int, bool]]]], size: int, always: set[int]
) -> None:
    samples = [
        Sample(
            str(number),
            "c",
            "train" if split == "train" else "held_out",
            0,
            np.array([token for token, _ in pairs], np.int32),
            np.array([learned for _, learned in pairs], np.bool_),
        )
        for number, (split, pairs) in enumerate(rows)
    ]
    found = choose(count_ids(samples, "train", TARGET), size, always)
    ids, coverage = twin(rows, size, always)
    assert found.draft_ids.tolist() == ids
    assert found.coverage == coverage
