"""The draft vocabulary and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.eagle.data.vocabulary import VOCABULARY, choose, read_vocabulary, share_in, write_vocabulary
from breakeven.errors import RunFormatError, StorageError, UsageError

COUNTS = np.array([0, 5, 3, 3, 3, 0, 9, 0])


def test_the_most_frequent_are_in_it_and_of_equals_the_lower() -> None:
    found = choose(COUNTS, 3, [])
    assert found.draft_ids.tolist() == [1, 2, 6] and found.size == 3
    assert found.coverage == 17 / 23


def test_special_tokens_are_in_it_however_rare() -> None:
    found = choose(COUNTS, 3, [7, 6, 99, -1])
    assert found.draft_ids.tolist() == [1, 6, 7]
    assert found.coverage == 14 / 23


def test_tokens_that_never_came_fill_it_up_from_the_lowest() -> None:
    assert choose(COUNTS, 7, []).draft_ids.tolist() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("size", [0, 8, 9, 32_000])
def test_the_targets_own(size: int) -> None:
    found = choose(COUNTS, size, [0])
    assert found.draft_ids.tolist() == list(range(8)) and found.coverage == 1.0


def test_nothing_was_learned_from() -> None:
    empty = np.zeros(8, np.int64)
    assert choose(empty, 3, []).coverage == 0.0
    assert share_in(empty, np.arange(3)) is None


def test_too_small_for_the_special_tokens() -> None:
    with pytest.raises(
        UsageError, match=r"draft_vocabulary = 2 has no room.*3 special tokens.*write  draft_vocabulary = 8"
    ):
        choose(COUNTS, 2, [0, 1, 2])


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / VOCABULARY
    written = choose(COUNTS, 3, [7])
    write_vocabulary(path, written)
    found = read_vocabulary(path, 8)
    assert (found.target_size, found.coverage) == (8, written.coverage)
    assert found.draft_ids.tolist() == written.draft_ids.tolist()
    assert json.loads(path.read_bytes()).keys() == {"target_size", "draft_ids", "coverage"}


@pytest.mark.parametrize(("size", "said"), [(6, "fewer than the map reaches"), (9, "made for a target of 8")])
def test_another_target(size: int, said: str, tmp_path: Path) -> None:
    write_vocabulary(tmp_path / VOCABULARY, choose(COUNTS, 3, [7]))
    with pytest.raises(UsageError, match=said):
        read_vocabulary(tmp_path / VOCABULARY, size)


@pytest.mark.parametrize(
    "change",
    [
        {"draft_ids": [2, 1]},
        {"draft_ids": [1, 1]},
        {"draft_ids": [-1, 1]},
        {"draft_ids": [1, 8]},
        {"draft_ids": []},
        {"draft_ids": [True]},
        {"draft_ids": ["1"]},
        {"draft_ids": 5},
        {"target_size": "8"},
        {"coverage": 2},
        {"coverage": None},
    ],
)
def test_a_damaged_map_says_what_to_type(change: dict[str, Any], tmp_path: Path) -> None:
    record = {"target_size": 8, "draft_ids": [1, 2], "coverage": 0.5, **change}
    (tmp_path / VOCABULARY).write_text(json.dumps(record))
    with pytest.raises(RunFormatError, match="breakeven eagle data RECIPE --fresh"):
        read_vocabulary(tmp_path / VOCABULARY)


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{}", b"\xff"])
def test_a_file_that_is_none(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / VOCABULARY).write_bytes(data)
    with pytest.raises(RunFormatError):
        read_vocabulary(tmp_path / VOCABULARY)


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        write_vocabulary(tmp_path / "none" / VOCABULARY, choose(COUNTS, 3, []))
