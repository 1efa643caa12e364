"""Acceptance recorded beside the ids: which lengths belong to which token, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.errors import UsageError
from breakeven.replay.sources import Source, open_source

STUDY = Path(__file__).parents[4].parent / "shared" / "data" / "specdecode_bench_sharegpt.jsonl"


def source_of(folder: Path, *records: dict[str, Any]) -> Source:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps({"token_ids": [1, 2, 3], **record}) + "\n" for record in records))
    return open_source(path)


def lengths(*values: int) -> dict[str, list[int]]:
    return {"acc_len": list(values)}


def test_lengths_are_cut_and_padded(tmp_path: Path):
    record = {"acc_eagle": lengths(1, 4, 2, 9, 9), "acc_ngram": lengths(3), "other": {"x": 1}}
    (request,) = source_of(tmp_path, record)
    assert {name: values.tolist() for name, values in request.recorded.items()} == {
        "acc_eagle": [0, 3, 1],
        "acc_ngram": [2, -1, -1],
    }
    assert request.recorded["acc_eagle"].dtype == np.int32


@pytest.mark.parametrize("wrong", [[-1], ["1"], 3, [2**31], [1, 1, 1, -1]])
def test_what_is_no_length(wrong: Any, tmp_path: Path):
    with pytest.raises(UsageError, match=r"line 1: `acc\.acc_len`"):
        list(source_of(tmp_path, {"acc": {"acc_len": wrong}}))


FEWER = "hold fewer lengths than output tokens, where nothing counts as drafted"
MORE = "hold more lengths than output tokens, which were cut off"


@pytest.mark.parametrize(
    ("columns", "warnings"),
    [
        ([lengths(1, 1, 1), lengths(2, 2, 2)], ()),
        ([lengths(1, 1, 1), lengths(1), lengths()], (f"a: 2 of 3 records {FEWER}",)),
        ([lengths(1, 1, 1, 1), lengths(1, 1, 1)], (f"a: 1 of 2 records {MORE}",)),
        ([lengths(1), lengths(1, 1, 1, 1), None], (f"a: 1 of 2 records {FEWER}; 1 of 2 records {MORE}",)),
    ],
)
def test_another_number_of_lengths_is_said_once_a_column(columns: list[Any], warnings: Any, tmp_path: Path):
    source = source_of(tmp_path, *({"prompt_token_ids": [1], "a": column} for column in columns))
    for _ in range(2):
        list(source)
        assert source.acceptance_warnings == warnings


def test_each_column_is_counted_by_itself(tmp_path: Path):
    source = source_of(tmp_path, {"prompt_token_ids": [1], "a": lengths(1), "b": lengths(1, 1, 1, 1)})
    list(source)
    assert source.acceptance_warnings == (f"a: 1 of 1 record {FEWER}", f"b: 1 of 1 record {MORE}")


@pytest.mark.skipif(not STUDY.exists(), reason="the study's data are not here")
def test_the_data_of_a_study():
    source = open_source(STUDY)
    requests = list(source)
    assert (len(requests), sum(len(request.output) for request in requests)) == (310, 225_541)
    assert all(len(request.recorded["acc_eagle"]) == len(request.output) for request in requests)
    assert source.acceptance_warnings == (
        f"acc_eagle: 113 of 310 records {FEWER}; 128 of 310 records {MORE}",
    )


def test_columns_seen_are_of_the_whole_record(tmp_path: Path):
    source = source_of(tmp_path, {}, {"acc_b": lengths(1)}, {"acc_a": lengths(1), "acc_b": lengths(1)})
    assert source.acceptance_columns == ()
    for _ in range(2):
        list(source)
        assert source.acceptance_columns == ("acc_b", "acc_a")
