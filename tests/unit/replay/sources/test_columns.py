"""Which column of each record is read: whichever holds something, whatever the first record has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.errors import UsageError
from breakeven.replay.sources import open_source

IDS = pa.list_(pa.int32())
Write = Any


def json_lines(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def json_list(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "x.json"
    path.write_text(json.dumps(records))
    return path


def parquet(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "x.parquet"
    names = dict.fromkeys(name for record in records for name in record)
    kinds = {name: IDS if name.endswith("token_ids") else None for name in names}
    columns = {name: pa.array([record.get(name) for record in records], kind) for name, kind in kinds.items()}
    pq.write_table(pa.table(columns), path)
    return path


every_format = pytest.mark.parametrize("write", [json_lines, json_list, parquet])


@every_format
@pytest.mark.parametrize("failed", [{"error": "timed out"}, {"output_token_ids": None, "output": "cut o"}])
def test_a_first_record_without_ids_is_skipped(write: Write, failed: dict[str, Any], tmp_path: Path):
    source = open_source(write(tmp_path, failed, {"output_token_ids": [1, 2]}))
    assert source.origin.ids == "recorded"
    assert [request.output.tolist() for request in source] == [[1, 2]]
    assert source.skipped == {"no token ids": 1}


@every_format
def test_each_record_has_its_own_column(write: Write, tmp_path: Path):
    records = [
        {"output_token_ids": [1]},
        {"generated_token_ids": [2], "output_token_ids": None},
        {"output_token_ids": [9], "generated_token_ids": [3]},
        {"token_ids": [4]},
        {"completion_token_ids": [5]},
    ]
    source = open_source(write(tmp_path, *records))
    assert [request.output.tolist() for request in source] == [[1], [2], [3], [4], [5]]
    assert source.skipped == {}


@every_format
def test_names_too(write: Write, tmp_path: Path):
    path = write(tmp_path, {"token_ids": [1], "request_id": "a"}, {"token_ids": [2], "id": "b"})
    assert [request.id for request in open_source(path)] == ["a", "b"]


@every_format
def test_no_record_with_ids_is_refused_with_all_columns(write: Write, tmp_path: Path):
    path = write(tmp_path, {"question": "a"}, {"tokens": "b"})
    with pytest.raises(UsageError, match=r"has no output: .*it has question, tokens$"):
        open_source(path)


@every_format
def test_a_column_of_ids_that_is_always_empty_is_counted(write: Write, tmp_path: Path):
    source = open_source(write(tmp_path, {"token_ids": None}, {"token_ids": []}))
    with pytest.raises(UsageError, match=r"no request to replay \(no token ids: 1, empty output: 1\)"):
        list(source)


@every_format
def test_text_in_a_later_record_asks_for_a_tokenizer(write: Write, tmp_path: Path):
    path = write(tmp_path, {"error": "timed out", "token_ids": None}, {"response": "two"})
    with pytest.raises(UsageError, match=r"holds text \(`response`\) .*--tokenizer FOLDER"):
        open_source(path)


@pytest.mark.parametrize("kind", [pa.null(), pa.list_(pa.null())], ids=str)
def test_a_parquet_column_without_any_integer(kind: pa.DataType, tmp_path: Path):
    path = tmp_path / "x.parquet"
    columns = {"output_token_ids": pa.array([None, None], kind), "token_ids": pa.array([[1], [2]], IDS)}
    pq.write_table(pa.table(columns), path)
    assert [request.output.tolist() for request in open_source(path)] == [[1], [2]]


def test_a_refusal_names_some_of_many_columns(tmp_path: Path):
    path = json_lines(tmp_path, {f"column{i}": i for i in range(1000)})
    with pytest.raises(UsageError, match=r"column29, …$"):
        open_source(path)
