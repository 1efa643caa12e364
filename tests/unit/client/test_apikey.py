"""ApiKey: where it comes from."""

from pathlib import Path

import pytest

from breakeven.client.apikey import ApiKey
from breakeven.errors import UsageError


def test_a_file_with_a_mark_and_a_line_end(tmp_path: Path):
    (tmp_path / "key").write_bytes(b"\xef\xbb\xbfabc\n")
    key = ApiKey.from_env_or_file(file=tmp_path / "key")
    assert key is not None and key.reveal() == "abc"


@pytest.mark.parametrize("path", ["/dev/zero", "/nowhere", "a\0b"])
def test_a_file_that_holds_no_key(path: str):
    with pytest.raises(UsageError, match="--api-key-file"):
        ApiKey.from_env_or_file(file=path)


def test_bytes_that_are_no_text(tmp_path: Path):
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        ApiKey.from_env_or_file(file=tmp_path / "key")
