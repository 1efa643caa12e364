"""Files are whole or not there; a disk's refusal is told in words that fit every verb."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from breakeven.errors import StorageError
from breakeven.trace.files import storage_error, storing, write_bytes_atomically


@pytest.mark.parametrize("number", [*sorted(errno.errorcode), None])
def test_the_advice_names_no_option(number: int | None) -> None:
    said = str(storage_error(Path("runs/x"), OSError(number, "so it is")))
    assert said.startswith("cannot write to runs/x: ") and "--" not in said
    assert any(word in said for word in ("choose another folder", "free some space", "raise the limit"))


def test_an_option_is_named_where_another_folder_would_do() -> None:
    locked, full = OSError(errno.EACCES, "no"), OSError(errno.ENOSPC, "full")
    assert str(storage_error(Path("x"), locked, "--out")).endswith("choose another folder with --out")
    assert str(storage_error(Path("x"), full, "--out")).endswith("the disk is full: free some space")


def test_what_was_there_stays_if_the_new_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_bytes_atomically(path, b"old")

    def full(_: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match=r"the disk is full: free some space$"), storing(tmp_path):
        write_bytes_atomically(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
