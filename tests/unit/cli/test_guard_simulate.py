"""`breakeven guard simulate`: what its options come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from breakeven.cli.cost_options import ChosenCost
from breakeven.cli.forecast import forecast
from breakeven.cli.guard_simulate import (
    EPSILONS,
    KS,
    MOST_CONCURRENCY,
    PAGE,
    _calibration,
    _concurrencies,
    _drafting,
    _grid,
    simulate,
)
from breakeven.cost.calibration import FILE
from breakeven.cost.step import StepCost
from breakeven.errors import UsageError
from breakeven.guard.simulate.next_steps import TRIAL
from tests.unit.guard.simulate.texts import write_record

NOTHING: dict[str, Any] = {"drafter_names": (), "ks": None, "n_ranges": None}
OWN = ("--model", "qwen3-30b-a3b", "--hardware", "h100-sxm")


def test_the_fixed_settings_of_vllm_are_every_window_with_every_n_range():
    grid = _grid(NOTHING, "vllm")
    assert {name for name, _ in grid} == {"vllm-ngram"}
    assert {settings["k"] for _, settings in grid} == set(KS)
    assert (4, 4) in {(settings["min_n"], settings["max_n"]) for _, settings in grid}
    small = _grid({**NOTHING, "ks": (2,), "n_ranges": ((2, 3),)}, "vllm")
    assert [dict(settings) for _, settings in small] == [{"k": 2, "min_n": 2, "max_n": 3}]


def test_those_of_another_engine_are_of_its_own_drafters():
    assert all(name.startswith("llamacpp-") for name, _ in _grid(NOTHING, "llama.cpp"))


def test_what_a_drafted_step_takes_may_be_given():
    known = _drafting("vllm", None)
    given = _drafting("vllm", 4.0)
    assert given.drafted_step_s.estimate == 0.004 != known.drafted_step_s.estimate
    assert given.step_s == known.step_s and given.source.startswith("4 ms for every step with drafts")


def test_concurrencies():
    assert _concurrencies(None) == (1,) and _concurrencies((1, 8)) == (1, 8)
    with pytest.raises(UsageError, match=f"type {MOST_CONCURRENCY} at most"):
        _concurrencies((MOST_CONCURRENCY + 1,))


def run(*words: object) -> Any:
    return CliRunner().invoke(simulate, [str(word) for word in words], catch_exceptions=False)


def test_a_record_at_a_modelled_cost(tmp_path: Path):
    path = write_record(tmp_path / "record.jsonl", requests=6)
    done = run(path, *OWN, "--jobs", 1, "--ks", "1,4", "--n-ranges", "2-4", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found["fixed"]) == 2 and len(found["by_epsilon"]) == len(EPSILONS.split(","))
    assert found["guard"]["worst"]["speedup"] <= found["guard"]["speedup"] <= found["oracle"]["speedup"]
    assert found["source_of_cost"] == "modelled"
    assert any("does not say which engine" in said for said in found["warnings"])
    pays = found["guard"]["speedup"] > 1
    assert found["next_commands"] == (["breakeven guard vllm-config", TRIAL] if pays else [])


@pytest.mark.parametrize(("of", "handed_on"), [("vllm", True), (None, True), ("sglang", False)])
def test_only_a_calibration_of_the_same_engine_is_handed_on(of: str | None, handed_on: bool):
    chosen = ChosenCost(cast(StepCost, None), "", None, of)
    values = {"calibration": Path("runs/curve")}
    assert _calibration(values, chosen, "vllm") == ("runs/curve" if handed_on else None)
    assert _calibration({"calibration": None}, chosen, "vllm") is None


def test_the_page_is_written_where_asked(tmp_path: Path):
    path = write_record(tmp_path / "record.jsonl", requests=3)
    page = tmp_path / "page.html"
    words = ("--jobs", 1, "--ks", "2", "--n-ranges", "2-4", "--epsilons", "0.02", "--html", page)
    done = run(path, *OWN, *words, "--concurrency", "2")
    assert done.exit_code == 0, done.output
    assert f"Report: {page}" in done.stdout and "concurrency" in done.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_cost_must_be_named(tmp_path: Path):
    with pytest.raises(UsageError, match="the cost of a step is not known"):
        run(write_record(tmp_path / "record.jsonl", requests=3))


def test_a_calibration_is_no_record(tmp_path: Path):
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(UsageError, match=f"type  breakeven guard simulate RUN --calibration {tmp_path}"):
        run(tmp_path, "--calibration", tmp_path)


@pytest.mark.parametrize("verb", [forecast, simulate])
def test_what_is_tried_is_asked_as_by_a_forecast(verb: click.Command):
    shared = {param.name: param for param in verb.params if isinstance(param, click.Option)}
    asked = [shared[name] for name in ("drafter_names", "ks", "n_ranges", "concurrencies", "engine", "html")]
    assert all(option.help and "[default" in option.help for option in asked)
    assert [option.opts[0] for option in asked] == [
        *("--drafter", "--ks", "--n-ranges", "--concurrency", "--engine", "--html")
    ]


def test_a_page_that_cannot_be_names_one_that_can(tmp_path: Path):
    with pytest.raises(UsageError, match=f"type --html {PAGE}$"):
        run(write_record(tmp_path / "record.jsonl", requests=3), *OWN, "--html", tmp_path)


@pytest.mark.parametrize(
    ("drafter", "more", "said"),
    [
        ("oracle", (), "oracle is no fixed setting of vllm: type  --drafter vllm-ngram$"),
        ("recorded", ("--engine", "sglang"), "of sglang: type  --drafter sglang-ngram$"),
        ("llamacpp-ngram-mod", (), "of vllm: type  --engine llama.cpp  or  --drafter vllm-ngram$"),
        (
            "vllm-ngram",
            ("--engine", "llama.cpp"),
            "type  --engine vllm  or  --drafter llamacpp-ngram-simple$",
        ),
    ],
)
def test_what_no_engine_can_be_set_to_is_no_fixed_setting(
    drafter: str, more: tuple[str, ...], said: str, tmp_path: Path
):
    with pytest.raises(UsageError, match=said):
        run(write_record(tmp_path / "record.jsonl", requests=3), *OWN, "--drafter", drafter, *more)


def test_a_drafter_of_ones_own_is_one():
    grid = _grid({**NOTHING, "drafter_names": ("tests.unit.drafters.test_base:Zeros",)}, "llama.cpp")
    assert {name for name, _ in grid} == {"tests.unit.drafters.test_base:Zeros"}
