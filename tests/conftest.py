"""Fixtures that several folders of tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tiny_gguf import write_tiny

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# A shell that runs in the background, or nohup, ignores these, and so would every command that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama model of a few hundred kilobytes with random weights, F32."""
    return write_tiny(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture(scope="session")
def unhurried_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with 131,072 more tokens that it never says: one takes some ms. Of a faster model all of a
    short reply may arrive in one read, where a server and its client share a core, and has no speed then.
    """
    return write_tiny(tmp_path_factory.mktemp("unhurried") / "tiny.gguf", vocabulary=131_072)
