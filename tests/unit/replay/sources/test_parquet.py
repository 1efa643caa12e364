"""Parquet as a source: the same rows as JSON lines give, streamed."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.errors import UsageError
from breakeven.replay.sources import open_source


def write(path: Path, columns: dict[str, pa.Array], **how: object) -> Path:
    pq.write_table(pa.table(columns), path, **how)
    return path


def ids(*rows: list[int | None] | None, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(rows, pa.list_(kind or pa.int64()))


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        list(open_source(path))
    return str(caught.value)


KINDS = [pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lists_of_every_integer(kind: pa.DataType, tmp_path: Path):
    rows = [[1, 2], [3], [4, 5, 6]]
    path = write(tmp_path / "x.parquet", {"token_ids": ids(*rows, kind=kind)})
    source = open_source(path)
    assert [request.output.tolist() for request in source] == rows
    assert source.origin.kind == "parquet"


@pytest.mark.parametrize("kind", [pa.large_list(pa.int32()), pa.list_(pa.int32(), 2)], ids=str)
def test_other_lists(kind: pa.DataType, tmp_path: Path):
    path = write(tmp_path / "x.parquet", {"token_ids": pa.array([[1, 2], [3, 4]], kind)})
    assert [request.output.tolist() for request in open_source(path)] == [[1, 2], [3, 4]]


def test_all_columns(tmp_path: Path):
    path = write(
        tmp_path / "x",
        {
            "request_id": pa.array(["a", "b"]),
            "category": pa.array(["c", None]),
            "max_tokens": pa.array([7, None]),
            "prompt_token_ids": ids([9], []),
            "generated_token_ids": ids([1, 2, 3], [4]),
            "acc_eagle": pa.array([{"acc_len": [2, 1]}, None]),
            "unused": pa.array([b"x", b"y"]),
        },
    )
    first, second = open_source(path)
    assert (first.id, first.category, first.max_tokens, first.prompt.tolist()) == ("a", "c", 7, [9])
    assert first.recorded["acc_eagle"].tolist() == [1, 0, -1]
    assert (second.id, second.category, second.max_tokens) == ("b", "uncategorised", None)
    assert second.recorded == {} and second.prompt.tolist() == []


def test_rows_that_cannot_be_replayed_are_counted(tmp_path: Path):
    source = open_source(write(tmp_path / "x.parquet", {"token_ids": ids([1], None, [], [2])}))
    assert [request.id for request in source] == ["row1", "row4"]
    assert source.skipped == {"no token ids": 1, "empty output": 1}


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (ids([1], [-2]), "row 2: `token_ids` holds -2"),
        (ids([1], [2**31]), "row 2: `token_ids` holds 2147483648"),
        (ids([1], [None]), "row 2: `token_ids` holds 'None'"),
        (pa.array([[1.0]]), "list<"),
        (pa.array(["1 2"]), "string"),
        (pa.array([1]), "int64"),
    ],
)
def test_ids_that_are_none(column: pa.Array, problem: str, tmp_path: Path):
    assert problem in refused(write(tmp_path / "x.parquet", {"token_ids": column}))


def test_no_known_column(tmp_path: Path):
    message = refused(write(tmp_path / "x.parquet", {"tokens": ids([1])}))
    assert "it has tokens" in message and "token_ids" in message


def test_no_row(tmp_path: Path):
    assert "no request" in refused(write(tmp_path / "x.parquet", {"token_ids": ids()}))


def test_damage(tmp_path: Path):
    path = write(tmp_path / "x.parquet", {"token_ids": ids(*([[1, 2, 3]] * 1000))})
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "damaged" in refused(path)
    path.write_bytes(whole[:4] + bytes(40) + whole[44:])
    assert "damaged" in refused(path)


def test_memory_is_that_of_a_few_requests_and_not_of_the_file(tmp_path: Path):
    """200 requests of 20,000 tokens in one row group: 16 MB as int32, ten times that as Python lists."""
    random = np.random.default_rng(0)
    values = pa.array(random.integers(0, 100_000, 4_000_000, np.int32))
    column = pa.ListArray.from_arrays(pa.array(np.arange(0, 4_000_001, 20_000, np.int32)), values)
    path = write(tmp_path / "x.parquet", {"token_ids": column}, compression="none")
    del column, values
    source = open_source(path)
    before = pa.total_allocated_bytes()
    most = 0
    tracemalloc.start()
    for request in source:
        assert len(request.output) == 20_000
        most = max(most, pa.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 6_000_000 and peak < 3_000_000


ODD = {
    "nanoseconds": (pa.array([2**62 + 1], pa.timestamp("ns")), "2116-02-20 23:53:38.427387905"),
    "a long duration": (pa.array([2**62], pa.duration("ms")), str(2**62)),
    "a decimal": (pa.array([Decimal("1.5")]), "1.5"),
    "bytes": (pa.array([b"abc"]), "abc"),
    "a dictionary": (pa.array(["a"]).dictionary_encode(), "a"),
    "a number": (pa.array([7]), "7"),
    "true": (pa.array([True]), "True"),
}


@pytest.mark.parametrize("name", ODD)
def test_words_of_any_scalar_type(name: str, tmp_path: Path):
    column, word = ODD[name]
    (request,) = open_source(
        write(tmp_path / "x", {"token_ids": ids([1]), "id": column, "category": column, "model": column})
    )
    assert (request.id, request.category) == (word, word)


@pytest.mark.parametrize("column", ["id", "category", "model"])
@pytest.mark.parametrize(
    "values",
    [pa.array([1], pa.timestamp("ms", tz="Mars/Olympus")), pa.array([b"\xff"])],
    ids=["zone", "bytes"],
)
def test_words_that_cannot_be_read_name_the_column(column: str, values: pa.Array, tmp_path: Path):
    message = refused(write(tmp_path / "x", {"token_ids": ids([1]), column: values}))
    assert f"`{column}` holds {values.type} that cannot be read" in message and "make it text" in message


def test_a_limit_that_is_a_time_names_the_column(tmp_path: Path):
    times = pa.array([2**62 + 1], pa.timestamp("ns"))
    assert "`max_tokens` holds timestamp[ns]" in refused(
        write(tmp_path / "x", {"token_ids": ids([1]), "max_tokens": times})
    )


@pytest.mark.parametrize("column", ["id", "category", "model"])
@pytest.mark.parametrize("values", [pa.array([{"a": 1}]), pa.array([["a"]])], ids=["struct", "list"])
def test_words_that_are_containers(column: str, values: pa.Array, tmp_path: Path):
    message = refused(write(tmp_path / "x", {"token_ids": ids([1]), column: values}))
    assert f"row 1: `{column}` is" in message and "it must be text or a number" in message


def test_a_file_that_is_gone_is_not_counted(tmp_path: Path):
    path = write(tmp_path / "x", {"token_ids": ids([1])})
    source = open_source(path)
    path.unlink()
    assert source.expected is None
