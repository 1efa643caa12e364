"""One reader for what users write as TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.errors import UsageError
from breakeven.trace.toml_file import MOST_BYTES, read_toml


def test_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes('a = "é"\n[b]\nc = [1, 2]\n'.encode())
    assert read_toml(path, "another") == {"a": "é", "b": {"c": [1, 2]}}
    path.write_bytes(b"#" * MOST_BYTES)
    assert read_toml(path, "another") == {}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a = ", "is no TOML"),
        (b"\xff", "is no TOML"),
        (b"a = " + b"[" * 10_000, "is no TOML"),
        (b"#" * (MOST_BYTES + 1), "more than 1,000,000 bytes: name another"),
        (None, "cannot be read .*: name another"),
    ],
)
def test_what_is_none(data: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read_toml(path, "another")


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(UsageError, match="more than"):
        read_toml(Path("/dev/zero"), "another")
