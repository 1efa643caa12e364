"""GuardedNgram with batches as vLLM makes them: what it drafts, and what it does when it cannot."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from breakeven.cost.calibration import Calibration, save_calibration
from breakeven.cost.curve import CurvePoint
from breakeven.errors import UsageError
from breakeven.guard import vllm
from breakeven.guard.config import CONFIG, MODE
from breakeven.guard.survival import Survival
from breakeven.guard.vllm import LOG, GuardedNgram
from breakeven.trace.meta import ServerInfo
from tests.unit.guard.fake_vllm import FakeVllm, serve, vllm_config

CHEAP = {1: 10.0, 2: 10.1, 4: 10.3, 16: 11.5, 64: 20.0}
"""Milliseconds of a step by its tokens."""


class Clock:
    """Moves on by a plain step at each look."""

    def __init__(self, step_s: float = 0.01) -> None:
        self.now, self.step_s = 100.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """vLLM's logger does not pass on what it logs; without vLLM ours does."""
    with caplog.at_level(logging.INFO, LOG.name):
        yield caplog


def drafter(
    version: str = "0.32.0", mode: str = "", config: Any = None, k: int = 10, **changed: Any
) -> GuardedNgram:
    environment: dict[str, str] = {CONFIG: json.dumps(config or {}), MODE: mode}
    given = vllm_config(k, **changed)
    return GuardedNgram(given, environment=environment, version=version, clock=Clock())


def calibration(folder: Path, steps: Mapping[int, float] = CHEAP, **changed: Any) -> Path:
    server = {"engine": "vllm", "version": "0.32.0", "flags": {"max_model_len": 2048}}
    model = changed.pop("model", "tiny")
    made = Calibration(
        created="2026-01-01T00:00:00Z",
        breakeven_version="0.1.0",
        url="http://127.0.0.1:8000",
        api="chat",
        model=model,
        server=ServerInfo(**{**server, **changed}),
        workload="brief",
        max_tokens=64,
        moe=False,
        points=tuple(CurvePoint(n, ms / 1e3, ms / 1e3, ms / 1e3, 9) for n, ms in steps.items()),
        complete=True,
    )
    file = folder / "calibration.json"
    save_calibration(made, file)
    return file


def copying(seed: int = 1, tokens: int = 150) -> tuple[list[int], list[int]]:
    """A prompt, and a reply that says it again."""
    prompt = np.random.default_rng(seed).integers(0, 1000, tokens).tolist()
    return prompt, prompt


def free(seed: int, tokens: int = 150) -> tuple[list[int], list[int]]:
    random = np.random.default_rng(seed)
    return random.integers(0, 1000, tokens).tolist(), random.integers(0, 1000, tokens).tolist()


def test_a_copy_is_drafted_and_accepted(tmp_path: Path) -> None:
    fake, guard = FakeVllm(), drafter(config={"calibration": str(calibration(tmp_path))})
    fake.start(*copying())
    serve(fake, guard.propose)
    counters = guard._steps.policy.counters
    assert fake.accepted > 80
    assert (counters.drafted, counters.accepted) == (fake.drafted, fake.accepted)
    assert counters.ledger > 50
    assert guard.is_on


def test_the_batch_moves_and_its_counts_stay_true(tmp_path: Path) -> None:
    fake, guard = FakeVllm(), drafter(config={"calibration": str(calibration(tmp_path))})
    preempted = None
    for step in range(300):
        fake.clear()
        if step % 20 == 0 and len(fake.batch) < 6:
            fake.start(*(copying(step) if step % 40 else free(step)), chunks=1 + step % 3)
        if step % 33 == 5 and len(fake.batch) > 1:
            preempted = fake.preempt(fake.batch[0])
        elif preempted:
            fake.resume(preempted)
            preempted = None
        serve(fake, guard.propose, 1)
    assert guard.is_on
    assert guard._steps.cost.told.malformed == 0 and guard._steps.cost.told.prefill > 5


def test_drafts_keep_within_the_models_length(tmp_path: Path) -> None:
    prompt = [1, 2, 3, 4] * 24
    fake = FakeVllm()
    known = calibration(tmp_path, flags={"max_model_len": 100})
    guard = drafter(config={"calibration": str(known)}, max_model_len=100)
    one = fake.start(prompt, prompt)
    longest = 0
    for _ in range(3):
        drafts = guard.propose(*fake.step({}))
        assert len(drafts[0]) <= max(100 - one.count - 1, 0)
        longest = max(longest, len(drafts[0]))
    assert longest > 0


def test_drafts_keep_within_num_speculative_tokens(tmp_path: Path) -> None:
    fake = FakeVllm()
    guard = drafter(k=3, config={"calibration": str(calibration(tmp_path))})
    fake.start(*copying())
    sizes = []

    def propose(*given: Any) -> list[list[int]]:
        drafts = guard.propose(*given)
        sizes.append(len(drafts[0]))
        return drafts

    serve(fake, propose)
    assert max(sizes) == 3


def test_partial_prompts_get_no_draft(tmp_path: Path) -> None:
    fake, guard = FakeVllm(), drafter(config={"calibration": str(calibration(tmp_path))})
    fake.start(*copying(), chunks=3)
    for _ in range(2):
        assert guard.propose(*fake.step({})) == [[]]


@pytest.mark.parametrize("mode", ("off", "shadow"))
def test_modes_that_never_draft(mode: str, tmp_path: Path) -> None:
    fake = FakeVllm()
    guard = drafter(mode=mode, config={"calibration": str(calibration(tmp_path))})
    fake.start(*copying())
    serve(fake, guard.propose)
    assert fake.drafted == 0
    if mode == "shadow":
        counters = guard._steps.policy.counters
        assert counters.shadow_accepted > 80 and counters.ledger == 0
        assert guard._steps.cost.told.plain > 80


def test_only_the_first_rank_of_a_stage_drafts(tmp_path: Path) -> None:
    config = {"calibration": str(calibration(tmp_path))}
    assert not drafter(config=config, tensor_parallel_size=2, rank=3).is_on
    assert drafter(config=config, tensor_parallel_size=2, rank=2).is_on


def test_a_failure_is_logged_once_and_the_server_goes_on(
    tmp_path: Path, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, guard = FakeVllm(), drafter(config={"calibration": str(calibration(tmp_path))})
    one = fake.start(*copying(1, 500))
    serve(fake, guard.propose, 20)

    def fail(*_: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(guard._steps.policy, "decide", fail)
    serve(fake, guard.propose)
    assert one.ended and not guard.is_on
    told = [record for record in logged.records if record.levelno >= logging.ERROR]
    assert len(told) == 1 and "planted" in str(told[0].exc_info)


@pytest.mark.parametrize("bad", (None, np.zeros(0, np.int32)))
def test_arguments_that_cannot_be_fail_quietly(bad: Any, logged: pytest.LogCaptureFixture) -> None:
    guard = drafter()
    assert guard.propose([[1], []], bad, bad) == [[], []]
    assert not guard.is_on
    assert guard.propose([[1], []], bad, bad) == [[], []]
    assert sum(record.levelno >= logging.ERROR for record in logged.records) == 1


def test_a_kill_file_stops_it_and_its_absence_lets_it_go_on(
    tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "kill"
    clock = Clock(1.0)
    config = {"kill_file": str(file), "calibration": str(calibration(tmp_path))}
    environment = {CONFIG: json.dumps(config)}
    guard = GuardedNgram(vllm_config(), environment=environment, version="0.32.0", clock=clock)
    fake = FakeVllm()
    fake.start(*copying(1, 600))
    serve(fake, guard.propose, 30)
    assert guard.is_on and fake.drafted > 0
    file.touch()
    serve(fake, guard.propose, 2)
    drafted = fake.drafted
    serve(fake, guard.propose, 10)
    assert not guard.is_on and fake.drafted == drafted
    file.unlink()
    serve(fake, guard.propose, 20)
    assert guard.is_on and fake.drafted > drafted
    said = [record.getMessage() for record in logged.records if "by its kill file" in record.getMessage()]
    assert len(said) == 2


@pytest.mark.parametrize("version", ("0.30.0", "0.31.2", "0.32.0+cpu", "0.33.1.dev7+gabc"))
def test_versions_it_is_for(version: str) -> None:
    assert drafter(version=version, mode="off")


@pytest.mark.parametrize("version", ("0.29.3", "0.34.0", "1.0", "dev"))
def test_other_versions_are_refused_with_what_to_do(version: str) -> None:
    with pytest.raises(UsageError, match=r"0\.30 to 0\.33.*any_version"):
        drafter(version=version)
    assert drafter(version=version, mode="off", config={"any_version": True})


@pytest.mark.parametrize(
    ("changed", "field"),
    (
        ({"engine": "sglang"}, "engine sglang"),
        ({"version": "0.31.0"}, r"version 0\.31\.0"),
        ({"model": "other"}, "model other"),
        ({"flags": {"max_model_len": 4096}}, "max_model_len 4096"),
    ),
)
def test_a_calibration_of_another_server_is_refused(tmp_path: Path, changed: Any, field: str) -> None:
    file = calibration(tmp_path, **changed)
    with pytest.raises(UsageError, match=f"{field} there.*breakeven calibrate"):
        drafter(config={"calibration": str(file)})


def test_a_calibration_may_say_nothing_of_its_server(tmp_path: Path) -> None:
    file = calibration(tmp_path, engine=None, version=None, flags=None, model=None)
    assert drafter(config={"calibration": str(file)}).is_on
    file = calibration(tmp_path, model="models/tiny")
    assert drafter(config={"calibration": str(file)}, served_model_name=["a", "b"]).is_on


def test_what_was_learned_outlives_the_server(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "state.json"
    config = {"state_file": str(state), "calibration": str(calibration(tmp_path))}
    first = drafter(config=config)
    fake = FakeVllm()
    fake.start(*copying())
    serve(fake, first.propose)
    assert first._file is not None
    first._file.write()
    first._file.close()
    second = drafter(config=config)
    assert second._file is not None
    second._file.close()
    learned = second._steps.policy.survival.counts
    assert learned.sum() > 50
    assert np.array_equal(learned, first._steps.policy.survival.counts)
    state.write_text("{")
    third = drafter(config=config)
    assert third._file is not None
    third._file.close()
    assert third._steps.policy.survival.counts.sum() == 0
    (said,) = [record.getMessage() for record in logged.records if "begun anew" in record.getMessage()]
    assert "remove" not in said


def test_a_short_run_leaves_what_it_learned(tmp_path: Path) -> None:
    """A server that is killed writes nothing at its end."""
    state = tmp_path / "state.json"
    config = {"state_file": str(state), "calibration": str(calibration(tmp_path))}
    environment, clock = {CONFIG: json.dumps(config)}, Clock(0.1)
    guard = GuardedNgram(vllm_config(), environment=environment, version="0.32.0", clock=clock)
    assert guard._file is not None
    fake = FakeVllm()
    fake.start(list(range(60)), list(range(100, 160)))
    for _ in range(3):
        guard.propose(*fake.step({}))
    assert guard._file._since is None, "there was nothing to learn from yet"
    fake.start(*copying(1, 400))
    serve(fake, guard.propose)
    assert guard._file._writer is not None
    guard._file._writer.join()
    guard._file.close()
    assert Survival.from_json(state.read_bytes()).is_taught


def test_the_start_line_has_all_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vllm, "serve_metrics", lambda *_: None)
    state = tmp_path / "state.json"
    for said in ("begins anew", "was read"):
        logged.clear()
        one = drafter(config={"kill_file": "/run/off", "state_file": str(state), "metrics_port": 9400})
        assert one._file is not None
        one._file.write()
        one._file.close()
        (line,) = [record.getMessage() for record in logged.records]
        assert line.startswith("breakeven guard: on, at most 2.0%")
        files = (
            f"costs are learned, kill file /run/off, state file {state} ({said}), metrics at 127.0.0.1:9400 ("
        )
        assert files in line
    logged.clear()
    drafter()
    (line,) = [record.getMessage() for record in logged.records]
    assert "file" not in line and "metrics" not in line


def test_a_taken_metrics_port_does_not_stop_the_server(
    monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    def taken(*_: Any) -> None:
        raise UsageError("no metrics can be served")

    monkeypatch.setattr(vllm, "serve_metrics", taken)
    assert drafter(config={"metrics_port": 9400}).is_on
    said = [record.getMessage() for record in logged.records]
    assert any("no metrics" in one for one in said) and not any("metrics at" in one for one in said)


def test_each_data_parallel_engine_has_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = []
    monkeypatch.setattr(vllm, "serve_metrics", lambda metrics, host, port: ports.append((host, port)))
    drafter(config={"metrics_port": 9400}, data_parallel_index=3)
    assert ports == [("127.0.0.1", 9403)]


def test_it_has_no_weights() -> None:
    assert drafter(mode="off").load_model(SimpleNamespace()) is None
