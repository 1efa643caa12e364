"""IdleNgram: never drafts, whatever the environment has."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from breakeven.guard import vllm
from breakeven.guard.config import MODE
from breakeven.guard.vllm_idle import IdleNgram


def test_never_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODE, "on")
    monkeypatch.setattr(vllm, "_installed", lambda: "0.32.0")
    parallel = SimpleNamespace(rank=0, tensor_parallel_size=1)
    drafter = IdleNgram(SimpleNamespace(parallel_config=parallel))
    ids = np.tile(np.arange(4, dtype=np.int32), (2, 4))
    assert drafter.propose([[1], [2]], np.full(2, 16, np.int32), ids) == [[], []]
    assert not drafter.is_on
