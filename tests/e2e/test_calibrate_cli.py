"""`breakeven calibrate` as a user runs it: on the fake server, on llama.cpp, and interrupted."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from breakeven.cost.calibration import FILE, load_calibration
from breakeven.engines.llamacpp import LlamaSettings, candidate_settings
from breakeven.servers.embedded import EmbeddedServer
from breakeven.servers.fake import FakeServer, Script
from breakeven.trace.run import load_run
from tests.e2e.command import Command, breakeven, soon, status_of

pytestmark = pytest.mark.quiet
SCRIPT = Script(ttft_s=0.02, tpot_s=0.010, n_tokens=400)
SHORT = ("--quick", "--max-tokens", 64, "--max-concurrency", 3)
ATTEMPTS = 5
"""A step of the tiny model takes a tenth of a millisecond: on a busy machine no client keeps up with that."""
LLAMA = LlamaSettings(threads=1, parallel=3, ctx_size=6144)


def test_a_curve_comes_out_and_progress_goes_to_stderr(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with FakeServer(SCRIPT).in_thread() as server:
        done = breakeven("calibrate", server.url, *SHORT, "--out", out, "--json").succeeded()
    values = done.json()
    assert [point["concurrency"] for point in values["points"]] == [1, 2, 3]
    for point in values["points"]:
        assert point["low"] <= point["step_ms"] <= point["high"] and point["step_ms"] > 5
    assert [knot["tokens"] for knot in values["fit"]["knots"]] == [1, 2, 3]
    assert values["server"]["engine"] == "vllm" and values["complete"] is True
    assert "calibrate, decode steps: 0 of 447 (concurrency 1)" in done.err
    assert [len(point["visits"]) for point in values["points"]] == [2, 2, 1]
    assert values["between_visits"]["dof"] == 2
    table = breakeven("show", out / "concurrency-2-again").succeeded().out
    assert "Self-check" in table


def test_ctrl_c_keeps_the_points_measured_so_far(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with FakeServer(SCRIPT).in_thread() as server:
        words = ("--quick", "--max-tokens", 120, "--max-concurrency", 64, "--out", out)
        command = Command("calibrate", server.url, *words)
        assert soon((out / "concurrency-2" / "run.json").exists)
        command.signal(signal.SIGINT)
        command.end().refused(130, "interrupted", "points measured so far are in", str(out / FILE))
    kept = load_calibration(out)
    assert kept.points[0].concurrency == 1 and not kept.complete
    assert all(len(point.visits) == 1 for point in kept.points)
    assert not list(out.glob(".*.partial"))
    last = max(out.glob("concurrency-*"), key=lambda folder: int(folder.name.rpartition("-")[2]))
    assert status_of(last) in ("interrupted", "complete", "void")


def test_where_nothing_answers_nothing_is_written(tmp_path: Path) -> None:
    done = breakeven("calibrate", "http://127.0.0.1:9", "--out", tmp_path / "out")
    done.refused(3, "nothing answers")
    assert not (tmp_path / "out").exists()


async def test_llama_cpp_with_slots_gives_a_curve(tiny_model: Path, tmp_path: Path) -> None:
    async with EmbeddedServer() as server:
        url = await server.start(tiny_model, LLAMA, "tiny", tmp_path / "engine.log")
        prompts = tmp_path / "prompts.jsonl"
        prompts.write_text("".join(f'{{"prompt": "once upon {i}"}}\n' for i in range(3)))
        words = ("--prompts", prompts, "--api", "completions", "--max-concurrency", 3, "--max-tokens", 1500)
        for out in (tmp_path / f"out-{attempt}" for attempt in range(ATTEMPTS)):
            done = breakeven("calibrate", url, *words, "--out", out, "--json")
            if done.code == 0:
                break
    values = done.succeeded().json()
    assert [point["concurrency"] for point in values["points"]] == [1, 2, 3]
    assert values["server"]["engine"] == "llama.cpp" and values["model"] == "tiny"
    assert any("--kv-unified" in note for note in values["notes"])
    for point in values["points"]:
        assert 0 < point["low"] <= point["step_ms"] <= point["high"]
        assert point["errors"] == 0 and point["context_tokens"] > 0
    assert load_calibration(out).curve().step_seconds(2)[0] > 0
    assert load_run(out / "concurrency-3").meta.schedule.concurrency == 3


async def test_llama_cpp_that_speculates_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "aaaaaaaaaaaaaaaa"}\n')
    async with EmbeddedServer() as server:
        url = await server.start(tiny_model, candidate_settings(LLAMA), "tiny", tmp_path / "engine.log")
        words = ("--prompts", prompts, "--api", "completions", *SHORT, "--max-tokens", 300)
        done = breakeven("calibrate", url, *words, "--out", tmp_path / "out")
    done.refused(2, "the server speculates", "needs the baseline", "--spec-type")
