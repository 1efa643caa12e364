"""A stage's folder: begun, gone on with, whole, started over."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.eagle import stage as module
from breakeven.eagle.stage import BEGUN, WHOLE, Stage, checksum, read_made, required, start_over
from breakeven.errors import RunFormatError, StorageError, UsageError

SETTINGS: dict[str, Any] = {"sources": ("a", "b"), "seed": 0}
INPUTS = {"a": "1" * 64}


def begin(folder: Path, **changes: Any) -> Stage:
    return Stage(folder, "data", {**SETTINGS, **changes}, INPUTS)


def finish(folder: Path) -> Stage:
    stage = begin(folder)
    (folder / "samples").write_text("x")
    stage.finish([folder / "samples"], {"samples": np.int64(3)})
    return stage


def test_a_stage_is_whole_once_it_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "eagle/data"
    assert read_made(folder) is None
    stage = begin(folder)
    assert stage.made is None
    (folder / "samples").write_text("x")
    made = stage.finish([folder / "samples"], {"samples": np.int64(3)})
    assert made == stage.made == read_made(folder) == required(folder, "data")
    assert made.outputs == {"samples": hashlib.sha256(b"x").hexdigest()}
    assert made.settings == {"sources": ["a", "b"], "seed": 0} and made.inputs == INPUTS
    assert made.found == {"samples": 3}
    assert made.began <= made.ended and "breakeven" in made.packages


def test_it_goes_on_with_the_same_and_keeps_when_it_began(tmp_path: Path) -> None:
    began = json.loads((begin(tmp_path).folder / BEGUN).read_bytes())["began"]
    assert finish(tmp_path).made is not None
    assert required(tmp_path, "data").began == began
    assert begin(tmp_path).made == required(tmp_path, "data")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 1}, "seed = 0, not 1"),
        ({"sources": ("a",)}, "sources = ['a', 'b'], not ['a']"),
        ({"new": 1}, "new = None, not 1"),
    ],
)
def test_other_settings_are_refused_by_name(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(UsageError) as caught:
        begin(tmp_path, **changes)
    assert said in str(caught.value) and "--fresh" in str(caught.value)


def test_a_setting_that_is_gone_and_inputs_that_changed_are_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(UsageError, match="seed = 0, not None"):
        Stage(tmp_path, "data", {"sources": ("a", "b")}, INPUTS)
    with pytest.raises(UsageError, match="was begun with another a: put that back"):
        Stage(tmp_path, "data", SETTINGS, {"a": "2" * 64})
    with pytest.raises(UsageError, match="was begun without b: put that back"):
        Stage(tmp_path, "data", SETTINGS, {**INPUTS, "b": "2" * 64})


def test_what_no_stage_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("{}")
    with pytest.raises(UsageError, match=r"mine\.jsonl, which no stage made.*folder = "):
        begin(tmp_path)
    with pytest.raises(UsageError, match="no stage's folder"):
        start_over(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.jsonl"]


def test_a_beginning_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / f".{BEGUN}.partial").write_text("{")
    assert begin(tmp_path).made is None


def test_what_an_earlier_stage_lacks_is_told_with_its_command(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(UsageError, match="breakeven eagle data RECIPE"):
        required(tmp_path, "data")


DAMAGED = [b"", b"[]", b"{}", b"5", b"\xff", b'{"settings": {}, "inputs": {}}']


@pytest.mark.parametrize("data", [*DAMAGED, b'{"settings": 1, "inputs": {}, "began": 0.5}'])
def test_a_damaged_beginning_is_told(data: bytes, tmp_path: Path) -> None:
    (tmp_path / BEGUN).write_bytes(data)
    with pytest.raises(RunFormatError, match=r"begun\.json is damaged"):
        begin(tmp_path)


@pytest.mark.parametrize(
    "change", [{"found": 5}, {"format_version": "1"}, {"more": 1}, {"began": "x"}, {"inputs": {"a": 1}}]
)
def test_a_damaged_end_is_told(change: dict[str, Any], tmp_path: Path) -> None:
    finish(tmp_path)
    record = json.loads((tmp_path / WHOLE).read_bytes())
    (tmp_path / WHOLE).write_text(json.dumps({**record, **change}))
    with pytest.raises(RunFormatError, match=r"stage\.json is damaged"):
        read_made(tmp_path)


@pytest.mark.parametrize("data", DAMAGED)
def test_an_end_that_is_none_is_told(data: bytes, tmp_path: Path) -> None:
    (tmp_path / WHOLE).write_bytes(data)
    with pytest.raises(RunFormatError, match=r"stage\.json is damaged"):
        read_made(tmp_path)


def test_a_newer_format_names_the_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(tmp_path)
    monkeypatch.setattr(module, "FORMAT_VERSION", 0)
    with pytest.raises(RunFormatError, match="pip install -U breakeven"):
        read_made(tmp_path)


def test_starting_over_removes_all_or_all_but_what_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    start_over(folder)
    finish(folder)
    start_over(folder)
    assert list(tmp_path.iterdir()) == []
    finish(folder)
    (folder / "replies").mkdir()
    (folder / "replies/run.json").write_text("{}")
    for _ in range(2):
        start_over(folder, keep=["replies"])
        assert sorted(entry.name for entry in folder.iterdir()) == [BEGUN, "replies"]
    assert begin(folder, seed=1).made is None
    assert (folder / "replies/run.json").exists()
    start_over(folder)
    assert list(tmp_path.iterdir()) == []


def test_starting_over_that_was_cut_off_is_no_whole_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    finish(folder)
    monkeypatch.setattr(Path, "iterdir", lambda self: (_ for _ in ()).throw(OSError(5, "input/output error")))
    with pytest.raises(StorageError):
        start_over(folder, keep=["replies"])
    monkeypatch.undo()
    assert read_made(folder) is None and (folder / "samples").exists()
    assert begin(folder).made is None


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        begin(tmp_path / "file/data")


def test_a_checksum_is_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 7)
    (tmp_path / "x").write_bytes(b"0123456789" * 10)
    assert checksum(tmp_path / "x") == hashlib.sha256(b"0123456789" * 10).hexdigest()


def test_what_was_made_is_a_record(tmp_path: Path) -> None:
    made = finish(tmp_path).made
    assert made is not None and replace(made, stage="other") != made


def test_starting_over_empties_a_folder_on_another_disk_and_keeps_the_link(tmp_path: Path) -> None:
    disk, folder = tmp_path / "disk", tmp_path / "states"
    disk.mkdir()
    folder.symlink_to(disk)
    finish(folder)
    start_over(folder)
    assert folder.is_symlink() and {one.name for one in disk.iterdir()} == {BEGUN}
    assert begin(folder, seed=1).made is None


def test_a_stage_is_of_the_files_that_it_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    Stage(tmp_path / "made", "states", {}, {"a": checksum(tmp_path / "a")}).finish([], {})
    assert required(tmp_path / "made", "states", {"a": tmp_path / "a"}).stage == "states"
    (tmp_path / "a").write_text("y")
    with pytest.raises(UsageError, match=r"a is not the one .*type  breakeven eagle states RECIPE --fresh"):
        required(tmp_path / "made", "states", {"a": tmp_path / "a"})
    (tmp_path / "a").unlink()
    with pytest.raises(UsageError, match="is not the one"):
        required(tmp_path / "made", "states", {"a": tmp_path / "a"})


def test_what_changes_nothing_that_comes_out_is_free(tmp_path: Path) -> None:
    begin(tmp_path, concurrency=64)
    stage = begin(tmp_path, concurrency=8)
    assert stage.finish([], {}).settings["concurrency"] == 8
    assert begin(tmp_path, concurrency=64).made == stage.made
    assert begin(tmp_path).made == stage.made
    with pytest.raises(UsageError, match="without concurrency"):
        Stage(tmp_path, "data", SETTINGS, INPUTS | {"concurrency": "1" * 64})
