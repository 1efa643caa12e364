"""`breakeven calibrate --model`: the embedded engine is started, calibrated and stopped."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from breakeven.cli.calibrate import calibrate_verb
from breakeven.cli.trial import trial as trial_verb
from breakeven.client.endpoint import Endpoint
from breakeven.client.timeouts import Timeouts
from breakeven.cost.calibrate import CalibrationPlan, _begin
from breakeven.cost.calibration import FILE, Calibration, load_calibration, save_calibration
from breakeven.cost.curve import CurvePoint
from tests.e2e.command import breakeven

POINTS = tuple(
    CurvePoint(c, ms / 1e3, ms * 0.99e-3, ms * 1.01e-3, 20) for c, ms in ((1, 9.0), (2, 9.5), (3, 10.0))
)


async def identified(
    endpoint: Endpoint,
    plan: CalibrationPlan,
    out: Path,
    *,
    moe: bool | None,
    kv_unified: bool | None,
    timeouts: Timeouts,
    **_: Any,
) -> Calibration:
    """A calibration of the server that answers, with points that nobody measured: a step of the tiny model is
    too short for a client on a busy machine."""
    assert plan.concurrencies == (1, 2, 3) and kv_unified
    found = replace(await _begin(endpoint, plan, moe, timeouts), points=POINTS, complete=True)
    save_calibration(found, out / FILE)
    return found


def invoked(verb: click.Command, *words: object) -> Result:
    done = CliRunner().invoke(verb, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done
    return done


def test_what_it_measures_is_of_the_same_server_as_a_trial(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """trial → calibrate --model → forecast and explain. No client keeps up with the tiny model on a busy
    machine, and none is asked to."""
    monkeypatch.setattr("breakeven.cli.calibrate.calibrate", identified)
    monkeypatch.setattr("breakeven.client.selfcheck.LEAST_LAG_MS", math.inf)
    prompts, trial, out = tmp_path / "prompts.jsonl", tmp_path / "trial", tmp_path / "out"
    prompts.write_text("".join(f'{{"prompt": "once upon {i}"}}\n' for i in range(3)))
    asked = ("--model", tiny_model, "--prompts", prompts, "--api", "completions")
    invoked(trial_verb, *asked, "--repeats", 1, "--max-tokens", 800, "--out", trial)
    done = invoked(calibrate_verb, *asked, "--max-concurrency", 3, "--out", out)
    assert re.search(r"tiny on llama.cpp, no speculation, \d+ threads?, 3 slots", done.stderr)
    assert "kv_unified = 'true'" in (out / "engine.log").read_text()
    found = load_calibration(out)
    assert found.moe is False and found.model == "tiny" and found.server.engine == "llama.cpp"
    values = breakeven("forecast", trial, "--calibration", out, "--ks", 2, "--json").succeeded().json()
    assert values["source_of_cost"] == "measured"
    explained = breakeven("explain", trial, "--k", 3, "--calibration", out, "--json").succeeded().json()
    assert explained["model"] == "tiny" and explained["hardware"] is None


def test_an_engine_that_does_not_start_says_why_and_leaves_its_log(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    out = tmp_path / "out"
    done = breakeven("calibrate", "--model", tmp_path / "x.gguf", "--quick", "--out", out)
    assert done.code == 3 and "llama.cpp cannot serve" in done.err and done.orphans == ()
    assert [path.name for path in out.iterdir()] == ["engine.log"] and (out / "engine.log").stat().st_size
