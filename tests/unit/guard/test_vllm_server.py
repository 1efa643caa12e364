"""What the guard reads of a VllmConfig."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from breakeven.errors import UsageError
from breakeven.guard.config import CONFIG
from breakeven.guard.vllm import GuardedNgram
from breakeven.guard.vllm_idle import IdleNgram
from breakeven.guard.vllm_server import limits_of
from tests.unit.guard.fake_vllm import vllm_config


def drafter(config: Any, **changed: Any) -> GuardedNgram:
    return GuardedNgram(vllm_config(**changed), environment={CONFIG: json.dumps(config)}, version="0.32.0")


@pytest.mark.parametrize(("scheduled", "most"), ((None, 2048), (512, 512)))
def test_a_step_has_as_many_tokens_as_are_scheduled(scheduled: int | None, most: int) -> None:
    assert limits_of(vllm_config(max_num_scheduled_tokens=scheduled)).most_in_step == most


def test_batches_in_turn_are_refused_but_for_a_drafter_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="pipeline_parallel_size 2"):
        drafter({}, pipeline_parallel_size=2)
    monkeypatch.setattr("breakeven.guard.vllm._installed", lambda: "0.32.0")
    assert not IdleNgram(vllm_config(pipeline_parallel_size=2)).is_on


def test_engines_beside_each_other_have_a_state_file_each(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    for engine in (0, 2):
        one = drafter({"state_file": str(state)}, data_parallel_index=engine)
        assert one._file is not None
        one._file.write()
        one._file.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.json", "state.json.2"]


def test_a_state_file_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """Such as a device that gives bytes without end."""
    one = drafter({"state_file": "/dev/zero"})
    assert one._file is not None and one.is_on
    one._file.close()


def test_a_state_file_that_cannot_be_looked_for_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    for name in ("exists", "is_file"):
        monkeypatch.setattr(Path, name, denied)
    one = drafter({"state_file": "/no/state.json"})
    assert one._file is not None and one.is_on
    one._file.close()
