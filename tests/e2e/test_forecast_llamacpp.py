"""A forecast from a running llama.cpp, and what the server does once it speculates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breakeven.drafters.registry import make_drafter
from breakeven.engines.llamacpp import LlamaSettings
from breakeven.models.resolve import resolve
from breakeven.servers.embedded import EmbeddedServer
from tests.e2e.command import breakeven

DRAFTER, N, WINDOWS = "llamacpp-ngram-simple", 3, (3, 7)
REPLIES = ("--prompts", "copy", "--max-tokens", 48)
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "forecast.py"
MOST_MEDIAN_ERROR = 0.10
"""Of a quick benchmark; the full one is held to 7 %."""


async def forecast(model: Path, folder: Path) -> dict[int, dict[str, Any]]:
    """The rows by window, from a baseline with a few slots."""
    run, curve = folder / "run", folder / "curve"
    async with EmbeddedServer() as server:
        settings = LlamaSettings.parse("-t 1 -c 4096 --parallel 3")
        url = await server.start(model, settings, "m", folder / "baseline.log")
        few = ("--quick", "--max-concurrency", 3, "--dense")
        breakeven("calibrate", url, *few, *REPLIES, "--out", curve).succeeded()
        breakeven("measure", "--url", url, *REPLIES, "--out", run).succeeded()
    windows = ("--ks", ",".join(map(str, WINDOWS)), "--n-ranges", f"{N}-{N}")
    made = breakeven("forecast", run, "--calibration", curve, "--drafter", DRAFTER, *windows, "--json")
    return {row["settings"]["k"]: row for row in made.succeeded().json()["rows"]}


async def counted(model: Path, k: int, folder: Path) -> dict[str, Any]:
    """What a server that speculates at window k counts for the same prompts."""
    flags = make_drafter(DRAFTER, {"n": N, "k": k}).flags()
    async with EmbeddedServer() as server:
        settings = LlamaSettings.parse(f"-t 1 {flags}")
        url = await server.start(model, settings, "m", folder / f"window-{k}.log")
        out = ("--out", folder / f"window-{k}")
        done = breakeven("measure", "--url", url, *REPLIES, *out, "--json")
    speculation: dict[str, Any] = done.succeeded().json()["speculation"]
    return speculation


@pytest.mark.slow
async def test_a_forecast_rests_on_the_drafts_that_the_server_then_makes(tmp_path: Path) -> None:
    model = resolve("smollm2")
    rows = await forecast(model, tmp_path)
    assert set(rows) == set(WINDOWS)
    for k, row in rows.items():
        server = await counted(model, k, tmp_path)
        assert server["drafted_tokens"] == row["drafted_tokens"] > 0
        assert server["accepted_tokens"] == row["accepted_tokens"]


@pytest.mark.slow
@pytest.mark.quiet
def test_forecasts_are_near_what_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "forecast.json"
    words = (sys.executable, str(BENCHMARK), "--quick", "--out", str(out))
    subprocess.run(words, check=True)
    summary = json.loads(out.read_text())["summary"]
    assert summary["median_error"] <= MOST_MEDIAN_ERROR
    assert summary["right_side"] == summary["clear_rows"]
