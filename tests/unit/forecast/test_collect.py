"""Collecting steps: the same as a replay counts, batch by batch, also of drafters that learn."""

import json

import numpy as np
import pytest

from breakeven.errors import UsageError
from breakeven.forecast.collect import collect
from breakeven.replay.run import replay_source
from breakeven.replay.sources import open_source

GRID = [("vllm-ngram", {"k": 3, "min_n": 1, "max_n": 2}), ("vllm-suffix", {}), ("oracle", {"k": 2})]


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        {
            "id": str(r),
            "category": "ab"[r % 2],
            "prompt_token_ids": rng.integers(0, 6, 5 + r).tolist(),
            "generated_token_ids": rng.integers(0, 6, 20 + 7 * r).tolist(),
        }
        for r in range(5)
    ]
    path = tmp_path / "record.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return open_source(path)


@pytest.mark.parametrize("jobs", [1, 2])
def test_counts_are_those_of_a_replay(source, jobs):
    requests, found = collect(source, GRID, "prefill", jobs)
    assert requests.output_tokens.tolist() == [20, 27, 34, 41, 48]
    assert requests.prompt_tokens.tolist() == [5, 6, 7, 8, 9]
    assert requests.emitted_tokens.tolist() == [19, 26, 33, 40, 47]
    assert [requests.categories[place] for place in requests.category] == list("ababa")
    for (name, settings), steps in zip(GRID, found, strict=True):
        counters = replay_source(source, name, settings, jobs=1).total.counters
        assert int(steps.counts.sum()) == len(steps.drafted) == counters.steps
        assert int(steps.drafted.sum()) == counters.drafted_tokens
        assert int(steps.accepted.sum()) == counters.accepted_tokens


def test_the_context_is_the_mean_over_plain_steps(source):
    requests, _ = collect(source, GRID[:1], "replayed")
    weights = requests.output_tokens
    assert requests.first == 0
    expected = float(((requests.prompt_tokens + weights / 2) * weights).sum() / weights.sum())
    assert requests.context_tokens == pytest.approx(expected)


def test_outputs_of_one_token_have_no_step(tmp_path):
    path = tmp_path / "short.jsonl"
    path.write_text(json.dumps({"prompt_token_ids": [1], "generated_token_ids": [2]}))
    with pytest.raises(UsageError, match="--first-token replayed"):
        collect(open_source(path), GRID[:1], "prefill")
