"""vllm-ngram against what a published study recorded with vLLM (n 3–7, k 20), position by position."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from breakeven.drafters.tokens import flat
from breakeven.drafters.vllm_ngram import VllmNgram, VllmNgramSettings

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SETTINGS = VllmNgramSettings(k=20, min_n=3, max_n=7)


@pytest.mark.parametrize(
    ("name", "positions", "unlike"),
    [("gsm8k", 49_848, []), ("sharegpt", 225_541, [("98", 405)])],
)
def test_accepted_lengths_are_the_recorded_ones(
    name: str, positions: int, unlike: list[tuple[str, int]]
) -> None:
    """acc_len counts the token after the draft too, and runs past the end of the record."""
    path = DATA / f"specdecode_bench_{name}.jsonl"
    if not path.exists():
        pytest.skip(f"{path.name} is not in a folder shared/data beside the repository")
    records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    tokens = flat([(record["prompt_token_ids"], record["generated_token_ids"]) for record in records])
    accepted = VllmNgram(SETTINGS).table(tokens).accepted
    assert len(accepted) == positions
    found = []
    for r, record in enumerate(records):
        recorded = np.array(record["acc_ngram"]["acc_len"]) - 1
        recorded = np.minimum(recorded, np.arange(len(recorded), 0, -1))
        ours = accepted[tokens.positions[r] : tokens.positions[r + 1]]
        found += [(record["id"], int(at)) for at in np.flatnonzero(ours != recorded)]
    assert found == unlike
