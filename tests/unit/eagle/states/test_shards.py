"""shards.jsonl: a line means that the file is there, whatever was interrupted."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from breakeven.eagle.states.shards import FILE, Index, parse
from breakeven.errors import StorageError


@pytest.fixture
def index(tmp_path: Path) -> Index:
    made = Index(tmp_path)
    made.add("shard-00000.safetensors", b"first", ["a", "b"], 7)
    made.add("shard-00001.safetensors", b"second", ["c"], 3)
    return made


def test_lines_say_what_is_in_place(index: Index, tmp_path: Path) -> None:
    assert Index(tmp_path).lines == index.lines
    first, second = (json.loads(line) for line in (tmp_path / FILE).read_text().splitlines())
    assert first == {
        "shard": "shard-00000.safetensors",
        "sha256": hashlib.sha256(b"first").hexdigest(),
        "bytes": 5,
        "samples": ["a", "b"],
        "tokens": 7,
    }
    assert second["samples"] == ["c"] and (tmp_path / second["shard"]).read_bytes() == b"second"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "shard-00000.safetensors",
        "shard-00001.safetensors",
        FILE,
    ]


def test_a_line_cut_anywhere_is_dropped_and_can_be_written_again(index: Index, tmp_path: Path) -> None:
    whole = (tmp_path / FILE).read_bytes()
    begin = whole.index(b"\n") + 1
    for end in range(begin, len(whole)):
        (tmp_path / FILE).write_bytes(whole[:end])
        again = Index(tmp_path)
        assert list(again.lines) == ["shard-00000.safetensors"]
        again.add("shard-00001.safetensors", b"second", ["c"], 3)
        assert (tmp_path / FILE).read_bytes() == whole


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"firs")])
def test_a_shard_that_is_gone_or_of_another_size_is_to_be_made_again(
    damage: object, index: Index, tmp_path: Path
) -> None:
    assert callable(damage)
    damage(tmp_path / "shard-00000.safetensors")
    assert list(Index(tmp_path).lines) == ["shard-00001.safetensors"]
    assert len(parse((tmp_path / FILE).read_bytes())) == 1


def test_only_a_recheck_sees_other_bytes_of_the_same_size(index: Index, tmp_path: Path) -> None:
    (tmp_path / "shard-00000.safetensors").write_bytes(b"worst")
    assert len(Index(tmp_path).lines) == 2
    assert list(Index(tmp_path, recheck=True).lines) == ["shard-00001.safetensors"]


def test_foreign_lines_are_no_shards(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"x")
    folder = tmp_path / "states"
    folder.mkdir()
    line = {"shard": "../outside", "sha256": "", "bytes": 1, "samples": [], "tokens": 0}
    lines = [b"no json", b"[]", b'{"shard": 1}', json.dumps(line).encode(), b"\xff"]
    (folder / FILE).write_bytes(b"\n".join(lines) + b"\n")
    assert Index(folder).lines == {}


@pytest.mark.parametrize("fails_at", range(1, 4))
def test_a_full_disk_loses_nothing(
    fails_at: int, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(index.lines)
    calls = 0
    real = os.fsync

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="full"):
        index.add("shard-00002.safetensors", b"third", ["d"], 1)
    monkeypatch.undo()
    again = Index(tmp_path)
    assert {name: again.lines[name] for name in before} == before
    again.add("shard-00002.safetensors", b"third", ["d"], 1)
    assert list(Index(tmp_path).lines) == [*before, "shard-00002.safetensors"]
