"""What is missing is named, with what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.eagle.extras import require
from breakeven.errors import MissingExtra


def test_what_is_there_is_no_error() -> None:
    require("json", "xml.dom")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"nowhere_at_all is not installed: .*'breakeven\[eagle\]'"):
        require("json", "nowhere_at_all.inside")


def test_what_a_module_lacks_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lacks_something.py").write_text("import nothing_like_this\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtra, match="nothing_like_this is not installed"):
        require("lacks_something")
