"""`breakeven eagle plan`: its options, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from breakeven.cli.eagle_plan import plan
from breakeven.cli.eagle_plan_data import Size
from breakeven.cost.calibration import save_calibration
from breakeven.errors import BreakevenError, UsageError
from breakeven.trace.meta import Schedule
from tests.unit.cost.test_calibration import CALIBRATION
from tests.unit.forecast.served import a_run, served

LLAMA = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")


def told(*words: str) -> dict[str, Any]:
    """What --json prints."""
    result = CliRunner().invoke(plan, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*words: str) -> str:
    with pytest.raises(BreakevenError) as caught:
        plan.main(list(words), standalone_mode=False)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("word", "size"),
    [("20TB", 20 * 10**12), ("1.5 TiB", round(1.5 * 2**40)), ("500gb", 5 * 10**11), ("1048576", 1 << 20)],
)
def test_sizes(word: str, size: int):
    assert Size().convert(word, None, None) == size


@pytest.mark.parametrize("word", ["", "TB", "-3TB", "0TB", "ten", "1e9TB", "3XB", "9" * 40])
def test_what_is_no_size(word: str):
    with pytest.raises(UsageError, match="type --disk 500GB"):
        Size().convert(word, None, None)


def test_without_a_record_what_is_unknown_is_a_range():
    found = told(*LLAMA)
    assert found["data"]["samples"] == 500_000
    tokens = found["data"]["tokens_per_sample"]
    assert tokens["low"] < tokens["estimate"] < tokens["high"]
    names = [one["name"] for one in found["assumed"]]
    assert {"samples", "tokens of a sample", "epochs", "share of them in replies"} <= set(names)
    assert all(one["source"] for one in found["assumed"])
    assert len(found["not_judged"]) == 2


def test_what_is_said_is_no_assumption():
    words = ("--samples", "1000", "--tokens-per-sample", "512", "--epochs", "3", "--keep-replies")
    found = told(*LLAMA, *words, "--gpu-hours", "10", "--disk", "1TB", "--gpus", "2")
    assert found["data"]["tokens_per_sample"] == {"estimate": 512, "low": 512, "high": 512}
    assert found["gpu_hours"]["generation"]["high"] == 0
    assert not {"samples", "epochs", "tokens of a sample"} & {one["name"] for one in found["assumed"]}
    assert (found["machine"]["gpus"], found["machine"]["server_gpus"]) == (2, 1)
    assert found["not_judged"] == []


def test_a_record_tells_how_long_samples_are_and_where_it_is_decided(tmp_path: Path):
    traces = [served(f"{i}#0", 100, 0.5, 0.0071, 50, at_s=2 * i) for i in range(4)]
    run = a_run(tmp_path / "run", traces, schedule=Schedule("closed", concurrency=1))
    found = told(str(run.path), *LLAMA)
    assert found["data"]["tokens_per_sample"]["estimate"] == 150
    assert found["data"]["reply_tokens_per_sample"]["estimate"] == pytest.approx(50)
    assert found["concurrency"] == 1
    assert found["basis"]["source"] == "anchored"


def test_a_calibration_needs_the_shape_and_the_device(tmp_path: Path):
    save_calibration(CALIBRATION, tmp_path / "calibration.json")
    curve = ("--calibration", str(tmp_path / "calibration.json"))
    assert "--model X  too" in refused(*curve)
    assert "--train-hardware h200-sxm --gpus 8" in refused(*curve, "--model", "qwen3-30b-a3b")
    found = told(*curve, "--model", "qwen3-30b-a3b", "--train-hardware", "h100-sxm", "--gpus", "8")
    assert found["basis"]["source"] == "measured"
    assert "GPUs of the calibrated server" in {one["name"] for one in found["assumed"]}
    assert found["machine"]["generation_concurrency"] <= CALIBRATION.points[-1].concurrency


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "the cost of a step is not known"),
        (("--model", "llama-3.1-8b"), "type --hardware Y too"),
        ((*LLAMA, "--draft-vocabulary", "999999"), "type --draft-vocabulary 32000"),
        ((*LLAMA, "--train-hardware", "h1000"), "no hardware preset 'h1000'"),
        ((*LLAMA, "--concurrency", "5000"), "type 1024 at most"),
        ((*LLAMA, "--out", "."), "it is a folder: type --out next-steps-eagle.md"),
        (("no/such/run", *LLAMA), "there is no folder no/such/run"),
    ],
)
def test_bad_input(words: tuple[str, ...], says: str):
    assert says in refused(*words)


def test_a_target_with_too_few_layers(tmp_path: Path):
    shape = {"layers": 4, "hidden": 128, "vocab": 40_000, "dense_ff": 256}
    attention = {"heads": 4, "kv_heads": 4, "head_dim": 32}
    file = tmp_path / "geometry.json"
    file.write_text(json.dumps({**shape, "attention": attention}))
    assert "a target of 4 layers" in refused("--model", str(file), "--hardware", "h100-sxm")


def test_markdown_is_written_beside_what_is_printed(tmp_path: Path):
    out = tmp_path / "next-steps-eagle.md"
    result = CliRunner().invoke(plan, [*LLAMA, "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    assert out.read_text().startswith("# EAGLE-3 head for llama-3.1-8b")
    assert f"Plan: {out}" in result.stdout
