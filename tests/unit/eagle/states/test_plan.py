"""Shards and batches: everything once, in sizes that the settings say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.states.plan import batches, plan_shards

lengths_of = st.lists(st.integers(1, 50), min_size=1, max_size=40).map(np.array)


@given(lengths_of, st.integers(1, 200))
def test_every_sample_is_in_one_shard_which_is_no_larger_than_it_must_be(
    lengths: np.ndarray, tokens: int
) -> None:
    shards = plan_shards(lengths, tokens)
    assert [sample for shard in shards for sample in shard.samples] == list(range(len(lengths)))
    assert len({shard.file for shard in shards}) == len(shards)
    for shard in shards:
        held = [int(lengths[sample]) for sample in shard.samples]
        assert sum(held[:-1]) < tokens
        assert sum(held) >= tokens or shard is shards[-1]


@given(lengths_of, st.integers(1, 9))
def test_every_sample_is_in_one_batch_beside_ones_of_its_length(lengths: np.ndarray, size: int) -> None:
    found = batches(lengths, range(len(lengths)), size)
    assert sorted(sample for batch in found for sample in batch) == list(range(len(lengths)))
    assert all(len(batch) == size for batch in found[:-1]) and 0 < len(found[-1]) <= size
    for before, after in pairwise(found):
        assert max(lengths[before]) <= min(lengths[after])


def test_a_shard_says_its_file() -> None:
    shards = plan_shards(np.array([3, 3, 3]), 4)
    assert [(shard.file, list(shard.samples)) for shard in shards] == [
        ("shard-00000.safetensors", [0, 1]),
        ("shard-00001.safetensors", [2]),
    ]


def test_what_is_in_a_batch_does_not_depend_on_other_shards() -> None:
    lengths = np.array([5, 1, 4, 2, 3, 9])
    assert batches(lengths, range(2, 6), 2) == [[3, 4], [2, 5]]
