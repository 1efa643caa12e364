"""samples.parquet, written and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.data import samples as module
from breakeven.eagle.data.samples import SAMPLES, SCHEMA, Sample, read_samples, write_samples
from breakeven.errors import RunFormatError, StorageError


def sample(name: str, ids: list[int], mask: list[bool], split: str = "train") -> Sample:
    side = "held_out" if split == "held_out" else "train"
    return Sample(name, "c", side, mask.index(True), np.array(ids, np.int32), np.array(mask, np.bool_))


def plain(samples: list[Sample]) -> list[tuple[object, ...]]:
    return [
        (one.id, one.category, one.split, one.prompt_tokens, one.input_ids.tolist(), one.loss_mask.tolist())
        for one in samples
    ]


ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), max_size=12)


@given(ROWS, st.integers(1, 20))
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], group: int
) -> None:
    path = tmp_path_factory.mktemp("samples") / SAMPLES
    written = [
        sample(f"{number:03}", ids, [at >= len(ids) // 2 for at in range(len(ids))])
        for number, ids in enumerate(rows)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GROUP_TOKENS", group)
        write_samples(path, written)
        first = path.read_bytes()
        write_samples(path, written)
    assert path.read_bytes() == first
    assert plain(list(read_samples(path))) == plain(written)


def test_the_columns_are_those_that_other_programs_read(tmp_path: Path) -> None:
    write_samples(tmp_path / SAMPLES, [sample("a", [1, 2], [False, True], "held_out")])
    assert pq.read_table(tmp_path / SAMPLES).to_pylist() == [
        {
            "id": "a",
            "category": "c",
            "split": "held_out",
            "prompt_tokens": 1,
            "input_ids": [1, 2],
            "loss_mask": [False, True],
        }
    ]


def test_arrays_have_their_types(tmp_path: Path) -> None:
    write_samples(tmp_path / SAMPLES, [sample("a", [1, 2, 3], [False, False, True])])
    (found,) = read_samples(tmp_path / SAMPLES)
    assert found.input_ids.dtype == np.int32 and found.loss_mask.dtype == np.bool_


@pytest.mark.parametrize("data", [None, b"", b"PAR1", b"{}"])
def test_a_file_that_is_none_says_what_to_type(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / SAMPLES).write_bytes(data)
    with pytest.raises(RunFormatError, match="breakeven eagle data RECIPE --fresh"):
        list(read_samples(tmp_path / SAMPLES))


@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_foreign_file_says_which_column_it_lacks(name: str, tmp_path: Path) -> None:
    table = pa.table({other: pa.array([1]) for other in SCHEMA.names if other != name})
    for field in SCHEMA:
        if field.name != name:
            at = table.schema.get_field_index(field.name)
            table = table.set_column(at, field.name, pa.array([None], field.type))
    pq.write_table(table, tmp_path / SAMPLES)
    with pytest.raises(RunFormatError, match=f"no column {name}"):
        list(read_samples(tmp_path / SAMPLES))


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        write_samples(tmp_path / "file" / SAMPLES, [])
