"""A forecast for vLLM on this machine's CPU against what a trial then measures: dense, and with experts.

Calibrate and measure a baseline, forecast each window from these two alone, and try each beside the baseline.
The table is printed: `pytest -m "vllm and quiet" -s tests/e2e/test_forecast_vllm.py`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from breakeven.drafters.registry import make_drafter
from tests.e2e.command import Command
from tests.e2e.small_qwen import write_small_qwen
from tests.e2e.vllm_server import vllm_server

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.quiet,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

WINDOWS = (1, 3, 7)
MIN_N, MAX_N = 2, 4
SEQUENCES, ROOM, REPEATS = 8, 1024, 3
REPLIES = ("--prompts", "default", "--max-tokens", 96)
FEED_FORWARD = {"dense": 4096, "moe": 1024}
"""Width: wide enough that a step takes longer than a client beside the servers may lag."""
PATIENCE_S = 600
CLEAR, MOST_MEDIAN_ERROR = 0.10, 0.15


@dataclass(frozen=True)
class Row:
    """A window: the speedup that was forecast, and the one that a trial measured."""

    k: int
    forecast: Mapping[str, float]
    measured: Mapping[str, float]

    @property
    def error(self) -> float:
        return self.forecast["estimate"] / self.measured["estimate"] - 1


@pytest.fixture(scope="module", params=("dense", "moe"))
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    kind: str = request.param
    folder = tmp_path_factory.mktemp(kind)
    model = write_small_qwen(folder / "model", moe=kind == "moe", ff=FEED_FORWARD[kind])
    with vllm_server(baseline_python(folder), model, {}, folder / "baseline.log", ROOM) as url:
        forecasts = forecast(url, f"--{kind}", folder)
        found = []
        for k in WINDOWS:
            with vllm_server(PYTHON, model, speculative(k), folder / f"window-{k}.log", ROOM) as candidate:
                found.append(Row(k, forecasts[k], trial(url, candidate, folder / f"trial-{k}")))
    show(kind, found)
    return found


def baseline_python(folder: Path) -> str:
    """A Python that starts the server without speculation and with room for a curve: last words count."""
    file = folder / "python"
    more = f"--max-num-seqs {SEQUENCES} --speculative-config null --per-request-spec-decode-metrics none"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(PYTHON)} "$@" {more}\n')
    file.chmod(0o755)
    return str(file)


def speculative(k: int) -> Mapping[str, Any]:
    drafter = make_drafter("vllm-ngram", {"k": k, "min_n": MIN_N, "max_n": MAX_N})
    config: dict[str, Any] = json.loads(shlex.split(drafter.flags())[1])
    return config


def forecast(url: str, moe_or_dense: str, folder: Path) -> dict[int, Mapping[str, float]]:
    """By window, from the baseline at `url` alone."""
    curve, run = folder / "curve", folder / "run"
    asked("calibrate", url, "--quick", "--max-concurrency", SEQUENCES, *REPLIES, moe_or_dense, "--out", curve)
    asked("measure", "--url", url, *REPLIES, "--token-ids", "--out", run)
    drafter = (
        "--drafter",
        "vllm-ngram",
        "--ks",
        ",".join(map(str, WINDOWS)),
        "--n-ranges",
        f"{MIN_N}-{MAX_N}",
    )
    made = asked("forecast", run, "--calibration", curve, *drafter, "--concurrency", 1)
    return {row["settings"]["k"]: row["cells"][0]["speedup"] for row in made["rows"]}


def trial(baseline: str, candidate: str, out: Path) -> Mapping[str, float]:
    sides = ("--baseline-url", baseline, "--candidate-url", candidate)
    found = asked("trial", *sides, *REPLIES, "--repeats", REPEATS, "--out", out)
    speedup: Mapping[str, float] | None = found["speedup"]
    assert speedup is not None, found["reason"]
    return speedup


def asked(*words: object) -> dict[str, Any]:
    return Command(*words, "--json").end(PATIENCE_S).succeeded().json()


def show(kind: str, rows: Sequence[Row]) -> None:
    print(f"\n{kind}: window, forecast, measured, error")
    for row in rows:
        said, truth = (
            f"{one['estimate']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
            for one in (row.forecast, row.measured)
        )
        print(f"{row.k:>3}  {said}  {truth}  {row.error:+.1%}")


def test_the_forecast_is_near_what_is_measured(rows: Sequence[Row]) -> None:
    assert median(abs(row.error) for row in rows) <= MOST_MEDIAN_ERROR


def test_a_clear_speedup_is_forecast_on_the_right_side_of_1(rows: Sequence[Row]) -> None:
    for row in rows:
        truth = row.measured["estimate"]
        if abs(truth - 1) > CLEAR:
            assert (truth > 1) == (row.forecast["estimate"] > 1), row
