"""Prompts of random ids are told from text; too few of them are not judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from breakeven.errors import UsageError
from breakeven.forecast.random_tokens import (
    COMMONEST,
    LEAST_TOKENS,
    commonest_share,
    own_tokens,
    refuse_random_prompts,
)
from breakeven.replay.sources import Source, open_source

TEMPLATE = list(range(900, 940))


def record(path: Path, prompts: list[list[int]]) -> Source:
    rows = [{"prompt_token_ids": prompt, "generated_token_ids": [1, 2, 3]} for prompt in prompts]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return open_source(path)


def evenly(n_prompts: int, n_tokens: int, vocab: int = 32_000, seed: int = 0) -> list[list[int]]:
    return np.random.default_rng(seed).integers(0, vocab, (n_prompts, n_tokens)).tolist()


def like_text(n_prompts: int, n_tokens: int) -> list[list[int]]:
    """Zipf's law with exponent 1 over 50,000 words."""
    ranks = np.arange(1, 50_001)
    weights = 1 / ranks
    drawn = np.random.default_rng(0).choice(ranks, (n_prompts, n_tokens), p=weights / weights.sum())
    found: list[list[int]] = drawn.tolist()
    return found


@pytest.mark.parametrize("vocab", [1_000, 32_000, 152_000])
@pytest.mark.parametrize("framed", [False, True])
def test_random_ids_are_refused_also_inside_a_chat_template(framed: bool, vocab: int, tmp_path: Path):
    prompts = [
        [*TEMPLATE, *prompt, *TEMPLATE[::-1]] if framed else prompt for prompt in evenly(20, 40, vocab)
    ]
    source = record(tmp_path / "r.jsonl", prompts)
    with pytest.raises(UsageError, match=r"look like random tokens .* breakeven measure"):
        refuse_random_prompts(source)


def test_ids_that_count_up_are_refused(tmp_path: Path):
    """As vLLM's random data set has them."""
    prompts = [list(range(start, start + 128)) for start in range(0, 40_000, 997)]
    with pytest.raises(UsageError, match="look like random tokens"):
        refuse_random_prompts(record(tmp_path / "r.jsonl", prompts))


def test_text_is_not_refused(tmp_path: Path):
    refuse_random_prompts(record(tmp_path / "r.jsonl", like_text(20, 60)))


def test_small_records_are_not_judged(tmp_path: Path):
    refuse_random_prompts(record(tmp_path / "r.jsonl", evenly(1, LEAST_TOKENS - 1)))
    with pytest.raises(UsageError):
        refuse_random_prompts(record(tmp_path / "s.jsonl", evenly(1, LEAST_TOKENS)))


def test_repeats_of_a_prompt_count_once(tmp_path: Path):
    refuse_random_prompts(record(tmp_path / "r.jsonl", evenly(1, LEAST_TOKENS // 2) * 9))


def test_only_the_beginning_is_read(tmp_path: Path):
    source = record(tmp_path / "r.jsonl", [*like_text(400, 60), *evenly(400, 60)])
    refuse_random_prompts(source)


def test_what_all_prompts_share_is_left_out():
    prompts = [np.array(ids, np.int32) for ids in ([7, 8, 1, 2, 9], [7, 8, 3, 9], [7, 8, 4, 5, 6, 9])]
    assert own_tokens(prompts).tolist() == [1, 2, 3, 4, 5, 6]
    assert own_tokens(prompts[:1]).tolist() == prompts[0].tolist()
    assert own_tokens([]).tolist() == []
    overlapping = [np.array(ids, np.int32) for ids in ([7, 7, 7], [7, 7])]
    assert own_tokens(overlapping).tolist() == [7]


def test_the_share_of_the_commonest():
    ids = np.array([*range(COMMONEST)] * 2 + [*range(100, 100 + COMMONEST)], np.int32)
    assert commonest_share(ids) == pytest.approx(2 / 3)
