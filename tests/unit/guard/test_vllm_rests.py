"""GuardedNgram where it rests: it says so, and counts what it did not decide."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.guard import vllm
from breakeven.guard.config import CONFIG, MODE
from breakeven.guard.reasons import Reason
from breakeven.guard.vllm import LOG, GuardedNgram
from tests.unit.guard.fake_vllm import FakeVllm, serve, vllm_config
from tests.unit.guard.test_vllm import calibration

STEPS = 12


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, LOG.name):
        yield caplog


def drafter(mode: str = "", config: Any = None, rank: int = 0) -> GuardedNgram:
    ticks = iter(range(1_000_000))
    return GuardedNgram(
        vllm_config(tensor_parallel_size=2, rank=rank),
        environment={MODE: mode, CONFIG: json.dumps(config or {})},
        version="0.32.0",
        clock=lambda: float(next(ticks)),
    )


def two_requests() -> FakeVllm:
    fake, random = FakeVllm(), np.random.default_rng(1)
    for _ in range(2):
        fake.start(random.integers(0, 50, 100).tolist(), random.integers(0, 50, 100).tolist())
    return fake


@pytest.mark.parametrize(("mode", "config"), [("off", {}), ("", {"mode": "off"})])
def test_one_that_is_off_says_so_once_and_how_to_turn_it_on(
    mode: str, config: dict[str, Any], warned: pytest.LogCaptureFixture
) -> None:
    guard = drafter(mode, config)
    serve(two_requests(), guard.propose, STEPS)
    (said,) = [record.getMessage() for record in warned.records]
    assert "off" in said and f"{MODE}=on" in said and not guard.is_on


def test_ranks_that_never_draft_say_nothing_nor_does_one_that_is_on(
    warned: pytest.LogCaptureFixture,
) -> None:
    assert not drafter("off", rank=1).is_on and drafter("on", {"mode": "off"}).is_on
    assert not warned.records


def test_what_a_kill_file_keeps_from_being_decided_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "kill"
    guard, fake = drafter(config={"kill_file": str(file)}), two_requests()
    serve(fake, guard.propose, STEPS)
    before = guard._steps.policy.counters
    assert before.decisions == 2 * STEPS and before.reasons[Reason.KILLED] == 0
    file.touch()
    serve(fake, guard.propose, STEPS)
    after = guard._steps.policy.counters
    assert after.reasons[Reason.KILLED] == 2 * STEPS
    assert sum(after.reasons.values()) == after.decisions == 4 * STEPS


def test_what_is_not_decided_after_a_failure_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    guard, fake = drafter(), two_requests()
    serve(fake, guard.propose, STEPS)

    def fail(*_: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(guard._steps.policy, "decide", fail)
    serve(fake, guard.propose, 1 + STEPS)
    counters = guard._steps.policy.counters
    assert counters.reasons[Reason.FAILED] == 2 * STEPS
    assert sum(counters.reasons.values()) == counters.decisions == 4 * STEPS


def test_a_failure_at_the_start_does_not_keep_the_server_from_starting(
    monkeypatch: pytest.MonkeyPatch, warned: pytest.LogCaptureFixture
) -> None:
    """As where the disk is full for compiled loops, or another version of vLLM lacks a field."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vllm, "warm_up", full)
    guard, fake = drafter(), two_requests()
    serve(fake, guard.propose)
    assert all(one.ended for one in fake.batch) and fake.drafted == 0 and not guard.is_on
    config = vllm_config()
    del config.scheduler_config
    assert not GuardedNgram(config, environment={}, version="0.32.0").is_on
    assert sum(record.levelno >= logging.ERROR for record in warned.records) == 2


def test_what_is_noticed_of_the_cost_is_said_once(
    tmp_path: Path, warned: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the figure in it changes."""
    monkeypatch.setattr(vllm, "NOTES_EVERY", 4)
    ticks = accumulate(1.01**n for n in range(10_000))
    guard = GuardedNgram(
        vllm_config(),
        environment={CONFIG: json.dumps({"calibration": str(calibration(tmp_path))})},
        version="0.32.0",
        clock=lambda: next(ticks),
    )
    serve(two_requests(), guard.propose, 80)
    said = [record.getMessage() for record in warned.records]
    assert sum("what the calibration says: it is of another server" in one for one in said) == 1


def test_in_the_shadow_it_is_not_on() -> None:
    assert drafter().is_on and not drafter("shadow").is_on
