"""Validation samples are chosen by prompt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.data.samples import Sample
from breakeven.eagle.train.split import split
from breakeven.errors import UsageError


def sample(name: str, prompt: int, *, reply: bool = True) -> Sample:
    mask = np.array([False, False, reply, reply])
    return Sample(name, "prose", "train", 2, np.array([1, prompt, 3, 4], np.int32), mask)


prompts = st.lists(st.integers(0, 30), min_size=2, max_size=60).filter(lambda found: len(set(found)) > 1)


@given(prompts, st.floats(0.01, 0.5), st.integers(0, 1 << 62))
def test_a_prompt_is_on_one_side(found: list[int], share: float, seed: int):
    samples = [sample(f"{number}", prompt) for number, prompt in enumerate(found)]
    parts = split(samples, share, seed)
    learned = {int(one.input_ids[1]) for one in parts.train}
    kept = {int(one.input_ids[1]) for one in parts.validation}
    assert learned and kept and not learned & kept
    assert len(parts.train) + len(parts.validation) == len(samples)
    assert len(kept) == max(1, min(round(share * len(set(found))), len(set(found)) - 1))


@given(prompts, st.integers(0, 1 << 62), st.randoms(use_true_random=False))
def test_order_of_the_samples_does_not_matter(found: list[int], seed: int, random: Any):
    samples = [sample(f"{number}", prompt) for number, prompt in enumerate(found)]
    before = {one.id for one in split(samples, 0.3, seed).validation}
    random.shuffle(samples)
    assert {one.id for one in split(samples, 0.3, seed).validation} == before


def test_another_seed_keeps_others():
    samples = [sample(f"{number}", number) for number in range(100)]
    kept = [{one.id for one in split(samples, 0.2, seed).validation} for seed in (0, 1)]
    assert kept[0] != kept[1]


def test_none_is_kept_where_none_is_asked_for():
    assert split([sample("0", 1)], 0, 0).validation == ()


def test_samples_without_a_reply_are_left_out():
    parts = split([sample("0", 1), sample("1", 2), sample("2", 3, reply=False)], 0, 0)
    assert [one.id for one in parts.train] == ["0", "1"]


def test_one_prompt_cannot_be_split():
    with pytest.raises(UsageError, match="validation = 0"):
        split([sample("0", 1), sample("1", 1)], 0.1, 0)


def test_nothing_to_learn_from():
    with pytest.raises(UsageError, match="no training sample"):
        split([sample("0", 1, reply=False)], 0.1, 0)
