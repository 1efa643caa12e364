"""A child that crashes, or has no engine, is an error of the command and not its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.errors import MissingExtra, ServerError
from breakeven.servers.routing import record_routing

PROMPTS = [[{"role": "user", "content": "one"}]]


def engine(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An xllamacpp of these lines for the child."""
    (folder / "xllamacpp.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def record(folder: Path) -> None:
    record_routing(folder / "moe.gguf", PROMPTS, 4, lambda: None)


def test_a_segmentation_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "import os, signal, sys\nprint('last words', file=sys.stderr)\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    engine(tmp_path, source, monkeypatch)
    with pytest.raises(ServerError, match=r"(?s)moe\.gguf: the engine was killed by SIGSEGV; .*last words"):
        record(tmp_path)


def test_an_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(tmp_path, "import os\nos._exit(3)\n", monkeypatch)
    with pytest.raises(ServerError, match="the engine ended with status 3"):
        record(tmp_path)


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(tmp_path, "raise ImportError\n", monkeypatch)
    with pytest.raises(MissingExtra, match=r"pip install 'breakeven\[local\]'"):
        record(tmp_path)
