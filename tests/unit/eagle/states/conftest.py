"""One target that several files look at, and change no more than a copy of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.eagle.states.tiny import write_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama in the Hugging Face format."""
    return write_model(tmp_path_factory.mktemp("target") / "model")
