"""A record with the cost of a step, from the options of the verbs that simulate a server."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.cli.costed_record import CostedRecord, open_costed
from breakeven.cost.calibration import FILE, save_calibration
from breakeven.errors import UsageError
from breakeven.trace.meta import ServerInfo
from tests.unit.cost.test_calibration import CALIBRATION
from tests.unit.forecast.served import a_run, served
from tests.unit.guard.simulate.texts import write_record

OPTIONS = (
    *("calibration", "model", "hardware", "tp", "ep", "step_ms", "reuse", "routing"),
    *("tokenizer", "engine"),
)
MODELLED = {"model": "qwen3-30b-a3b", "hardware": "h100-sxm", "step_ms": 5.0}


def opened(path: Path, **values: Any) -> CostedRecord:
    return open_costed(path, {**dict.fromkeys(OPTIONS), "drafter_names": (), **values}, "forecast")


@pytest.fixture
def of_sglang(tmp_path: Path) -> Path:
    save_calibration(replace(CALIBRATION, server=ServerInfo("sglang")), tmp_path / "curve" / FILE)
    return tmp_path / "curve"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_record(tmp_path / "record.jsonl", requests=3)


def test_the_engine_of_a_file_is_as_asked_else_as_the_calibration_says(file: Path, of_sglang: Path) -> None:
    assert opened(file, calibration=of_sglang).engine == "sglang"
    assert opened(file, calibration=of_sglang, engine="vllm").engine == "vllm"
    found = opened(file, **MODELLED)
    assert found.engine is None and found.run is None and found.chosen.cost.source == "anchored"


def test_that_of_a_run_is_as_it_says_unless_another_is_asked(tmp_path: Path) -> None:
    trace = served("p#0", 4, 0.5, prompt_token_ids=(1, 2, 3, 4), output_token_ids=tuple(range(24)))
    run = a_run(tmp_path / "run", [trace])
    found = opened(run.path, **MODELLED)
    assert found.engine == "vllm" and found.run is not None and found.run.path == run.path
    assert opened(run.path, **MODELLED, engine="sglang").engine == "sglang"


def test_a_drafter_that_is_none_is_told_before_what_is_wrong_with_the_cost(file: Path) -> None:
    for engine, guess in ((None, "vllm-ngram"), ("sglang", "sglang-ngram")):
        with pytest.raises(UsageError, match=f"did you mean {guess}"):
            opened(file, drafter_names=("ngram",), engine=engine)


def test_what_is_no_record_of_text_is_refused(tmp_path: Path, of_sglang: Path) -> None:
    with pytest.raises(UsageError, match="type  breakeven forecast RUN --calibration"):
        opened(of_sglang, **MODELLED)
    draw = random.Random(0)
    rows = [
        {"prompt_token_ids": draw.choices(range(100_000), k=100), "output_token_ids": [1, 2, 3]}
        for _ in range(10)
    ]
    drawn = tmp_path / "drawn.jsonl"
    drawn.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(UsageError, match="look like random tokens"):
        opened(drawn, **MODELLED)
