"""Where the extra is not installed, the command says what to type."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

from breakeven.eagle.data.samples import SAMPLES
from breakeven.eagle.stage import Stage, checksum
from breakeven.eagle.train.run import train_head
from breakeven.errors import MissingExtra
from tests.unit.eagle.train.tiny import LAYERS, TARGET, tiny_data


def test_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recipe, *_ = tiny_data(tmp_path)
    states = recipe.stage("states")
    stage = Stage(states, "states", {}, {SAMPLES: checksum(recipe.stage("data") / SAMPLES)})
    (states / "target_config.json").write_bytes(orjson.dumps(TARGET))
    stage.finish([], {"layers": LAYERS})
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"breakeven\[eagle\]"):
        train_head(recipe)
    assert not recipe.stage("train").exists()
