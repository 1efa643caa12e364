from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.models.file_server import FileServer, serving


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's cache, index settings or tokens."""
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HF_TOKEN", "HF_ENDPOINT", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
