"""`breakeven explain` as a user runs it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.cli.explain import explain
from breakeven.cost.calibration import save_calibration
from breakeven.cost.curve import CurvePoint
from breakeven.errors import UsageError
from breakeven.servers.fake import FakeServer, vllm_script
from breakeven.trace.run import load_run
from tests.e2e.command import breakeven, write_prompts
from tests.unit.cost.test_calibration import CALIBRATION

KIMI = (
    ("coding", 62.6, 46.4),
    ("math", 78.0, 64.8),
    ("structured", 76.1, 65.5),
    ("explanatory", 79.5, 72.5),
)
MODEL = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
SPEEDS = ("--speeds", "coding=62.6,46.4")
PLAIN_S = 0.008
"""A plain step of the run before: about that of the model, and far from that of the run after."""


def test_the_published_experiment_by_its_speeds():
    """The same as examples/kimi-k2.5-ngram, typed."""
    words = [word for name, *speeds in KIMI for word in ("--speeds", f"{name}={speeds[0]},{speeds[1]}")]
    config = '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'
    values = (
        breakeven(
            *("explain", *words, "--acceptance", "17-31%", "--engine", "vllm", "--engine-version", "0.16"),
            *(
                "--speculative-config",
                config,
                "--model",
                "kimi-k2.5",
                "--hardware",
                "rtx-pro-6000-ws",
                "--tp",
                8,
            ),
            *("--profiled", "all_reduce=6.2", "--json"),
        )
        .succeeded()
        .json()
    )
    least = [round(one["unexplained_ms"]["low"], 1) for one in values["explained"]]
    assert least == [5.6, 2.6, 2.1, 1.2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same prompts, `before` and a slower `after`, and `short` of replies of one token."""
    folder = tmp_path_factory.mktemp("runs")
    prompts = write_prompts(folder / "prompts.jsonl", 4)
    fast, slow, one = ({"tpot_s": PLAIN_S}, {"tpot_s": 0.02}, {"n_tokens": 1})
    for name, fields in (("before", fast), ("after", slow), ("short", one)):
        with FakeServer(vllm_script(**{"n_tokens": 24, "ttft_s": 0.01, **fields})).in_thread() as server:
            breakeven(
                "measure", "--url", server.url, "--prompts", prompts, "--out", folder / name
            ).succeeded()
        checked(folder / name)
    return folder


def checked(run: Path, *reasons: str) -> None:
    """Has the client of a run pass its self-check, whatever else this machine did meanwhile, or fail it."""
    meta = json.loads((run / "run.json").read_text())
    check = {**meta["self_check"], "ok": not reasons, "reasons": reasons}
    status = "void" if reasons else "complete"
    (run / "run.json").write_text(json.dumps({**meta, "status": status, "self_check": check}))


def test_two_runs_are_explained_by_category(runs: Path):
    done = breakeven("explain", runs / "before", runs / "after", "--k", 3, *MODEL, "--json").succeeded()
    values = done.json()
    assert [one["name"] for one in values["explained"]] == ["even", "odd"]
    assert values["engine"].startswith("vllm")
    for one in values["explained"]:
        assert one["observed"]["candidate_tpot_ms"] > one["observed"]["baseline_tpot_ms"] > 3
        assert one["unexplained_ms"]["low"] < one["unexplained_ms"]["high"]


def calibrate(folder: Path, run: Path, **changes: Any) -> Path:
    """A calibration of the server of a run, unless changed."""
    meta = load_run(run).meta
    points = tuple(
        CurvePoint(c, step_s, 0.975 * step_s, 1.025 * step_s, 20)
        for c, step_s in ((1, PLAIN_S), (2, 1.1 * PLAIN_S), (4, 1.3 * PLAIN_S))
    )
    values = {"server": meta.server, "model": meta.model, "points": points, "moe": False, "notes": ()}
    save_calibration(replace(CALIBRATION, **{**values, **changes}), folder / "calibration.json")
    return folder / "calibration.json"


def test_a_calibration_stands_for_the_model_of_verifying(runs: Path, tmp_path: Path):
    words = ("explain", runs / "before", runs / "after", "--k", 3, *MODEL, "--json")
    file = calibrate(tmp_path, runs / "before")
    values = breakeven(*words, "--calibration", file).succeeded().json()
    assert [part["part"] for part in values["waterfall"]] == ["step"]
    for one in values["explained"]:
        assert one["verify_ms"]["estimate"] == pytest.approx(
            0.3 * one["observed"]["baseline_tpot_ms"], rel=1e-3
        )
    assert "verify_ms" not in values["unknown"]
    breakeven(*words, "--calibration", file, "--reuse", "0.1").refused(2, "--reuse", "leave out")


def test_a_calibration_needs_no_hardware(runs: Path, tmp_path: Path):
    words = ("explain", runs / "before", runs / "after", "--k", 3, "--json")
    file = calibrate(tmp_path, runs / "before")
    values = breakeven(*words, "--calibration", tmp_path).succeeded().json()
    assert values["model"] == load_run(runs / "before").meta.model and values["hardware"] is None
    assert values["absent"]["hardware"] == "not said: type --hardware"
    assert {"model", "hardware"} <= set(values["unknown"]) and "context_tokens" not in values["unknown"]
    whole = breakeven(*words, "--calibration", file, *MODEL).succeeded().json()
    assert [one["unexplained_ms"] for one in whole["explained"]] == [
        one["unexplained_ms"] for one in values["explained"]
    ]
    assert not {"model", "hardware"} & set(whole["unknown"])


def test_a_model_alone_may_stand_beside_a_calibration(runs: Path, tmp_path: Path):
    words = ("explain", runs / "before", runs / "after", "--k", 3, "--json", "--model", "llama-3.1-8b")
    values = breakeven(*words, "--calibration", calibrate(tmp_path, runs / "before")).succeeded().json()
    assert values["model"] == "llama-3.1-8b" and "hardware" in values["unknown"]
    assert "model" not in values["unknown"]


def test_from_a_void_run_nothing_is_concluded(runs: Path, tmp_path: Path):
    pair = runs / "before", tmp_path / "void"
    shutil.copytree(runs / "after", pair[1])
    checked(pair[1], "the client fell behind")
    compared = breakeven("compare", *pair).succeeded()
    why = "the client failed its self-check, so its times cannot be relied on (candidate: the client fell"
    assert why in " ".join(compared.out.split())
    page = tmp_path / "page.html"
    done = breakeven("explain", *pair, "--k", 3, *MODEL, "--html", page).succeeded()
    said = " ".join(done.out.split())
    assert said.startswith(f"No verdict: {why}") and said.count(why) == 2
    assert "Unexplained" not in done.out and "What could cause" not in done.out
    assert why in page.read_text("utf-8") and "Not sought" in page.read_text("utf-8")
    values = breakeven("explain", *pair, "--k", 3, *MODEL, "--json").succeeded().json()
    assert why in values["refused"] and values["findings"] == values["ruled_out"] == []
    sound = breakeven("explain", *(runs / name for name in ("before", "after")), "--k", 3, *MODEL, "--json")
    assert sound.succeeded().json()["absent"]["refused"]


def test_what_differs_between_the_runs_is_said(runs: Path, tmp_path: Path):
    other = tmp_path / "other"
    shutil.copytree(runs / "after", other)
    meta = json.loads((other / "run.json").read_text())
    server = {**meta["server"], "version": "9.9"}
    (other / "run.json").write_text(json.dumps({**meta, "server": server}))
    values = breakeven("explain", runs / "before", other, "--k", 3, *MODEL, "--json").succeeded().json()
    assert any(one.startswith("engine versions differ") for one in values["warnings"])


def test_a_calibration_of_another_server_is_refused(runs: Path, tmp_path: Path):
    file = calibrate(tmp_path, runs / "before", model="another")
    words = ("explain", runs / "before", runs / "after", "--k", 3, *MODEL, "--calibration", file)
    breakeven(*words).refused(2, "model", "another")


def test_a_page_is_written_too(tmp_path: Path):
    page = tmp_path / "page.html"
    done = breakeven("explain", *SPEEDS, "--k", 5, *MODEL, "--html", page).succeeded()
    assert f"Report: {page}" in done.out
    assert page.read_text("utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        ((), ("two runs or a trial", "--speeds")),
        ((*SPEEDS, "runs/x"), ("one of the two",)),
        (("--speeds", "0,46.4", "--k", 5, *MODEL), ("no speed",)),
        (("--speeds", "62.6", "--k", 5, *MODEL), ("NAME=BASELINE,CANDIDATE",)),
        (("--speeds", "a,b", "--k", 5, *MODEL), ("NAME=BASELINE,CANDIDATE",)),
        (("--speeds", "a=1,nan", "--k", 5, *MODEL), ("no speed",)),
        ((*SPEEDS, *SPEEDS, "--k", 5, *MODEL), ("coding is given twice",)),
        ((*SPEEDS, "--k", 5, "--acceptance", "1.2", *MODEL), ("--acceptance 1.2", "0 to 1")),
        ((*SPEEDS, "--k", 5, "--acceptance", "31-17%", *MODEL), ("low first",)),
        ((*SPEEDS, "--k", 5, "--draft-share", "often", *MODEL), ("--draft-share 'often'",)),
        ((*SPEEDS, *MODEL), ("--k N",)),
        ((*SPEEDS, "--k", 5), ("--model and --hardware missing", "--calibration FOLDER")),
        ((*SPEEDS, "--k", 5, "--model", "llama-3.1-8b"), ("--hardware missing", "--calibration FOLDER")),
        ((*SPEEDS, "--k", 5, "--hardware", "h100-sxm"), ("--model missing",)),
        ((*SPEEDS, "--k", 5, "--calibration", "x", "--hardware", "h100-sxm"), ("--model X too",)),
        ((*SPEEDS, "--k", 5, "--calibration", "x", "--tp", 2), ("--tp", "leave it out")),
        ((*SPEEDS, "--k", 5, "--calibration", "x", "--profiled", "kv=1"), ("leave out --calibration",)),
        ((*SPEEDS, "--k", 5, "--model", "llama-3.1-8b", "--hardware", "h100"), ("did you mean",)),
        ((*SPEEDS, "--k", 5, *MODEL, "--profiled", "all_reduce"), ("PART=MS",)),
        ((*SPEEDS, "--k", 5, *MODEL, "--profiled", "nccl=2"), ("there are weights",)),
        ((*SPEEDS, "--speculative-config", "{", *MODEL), ("no JSON object",)),
        (
            (*SPEEDS, "--k", 5, "--speculative-config", '{"num_speculative_tokens": 3}', *MODEL),
            ("say 5 and 3", "leave one out"),
        ),
    ],
)
def test_a_wrong_request_says_what_to_type(words: tuple[object, ...], fragments: tuple[str, ...]):
    with pytest.raises(UsageError) as refusal:
        explain.main([str(word) for word in words], standalone_mode=False)
    for fragment in fragments:
        assert fragment in str(refusal.value)


def test_a_refusal_is_one_line_and_exit_code_2():
    breakeven("explain", "--speeds", "0,46.4", "--k", 5, *MODEL).refused(2, "no speed")


def test_one_run_is_no_pair(runs: Path):
    breakeven("explain", runs / "before", "--k", 3, *MODEL).refused(2, "BASELINE and CANDIDATE")


def test_a_folder_that_is_none_of_it_is_named(tmp_path: Path):
    breakeven("explain", tmp_path, "--k", 3, *MODEL).refused(2, str(tmp_path), "breakeven trial")


def test_runs_without_tpot_are_refused(runs: Path):
    message = breakeven("explain", runs / "before", runs / "short", "--k", 3, *MODEL)
    message.refused(2, "no prompt has a TPOT on both sides")


def test_runs_of_different_models_are_refused(runs: Path, tmp_path: Path):
    other = tmp_path / "other"
    shutil.copytree(runs / "after", other)
    meta = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps({**meta, "model": "another"}))
    breakeven("explain", runs / "before", other, "--k", 3, *MODEL).refused(2, "different models", "another")


def test_a_trial_without_its_baseline_is_refused(runs: Path, tmp_path: Path):
    from breakeven.trial.store import SideRecord, TrialRecord, save_trial

    trial = tmp_path / "trial"
    shutil.copytree(runs / "after", trial / "candidate")
    sides = {"baseline": SideRecord("plain"), "candidate": SideRecord("ngram")}
    save_trial(trial, TrialRecord("m", "w", "2026-01-01T00:00:00+00:00", 0.02, 0.05, sides))
    breakeven("explain", trial, "--k", 3, *MODEL).refused(2, "baseline")
    shutil.copytree(runs / "before", trial / "baseline")
    values = breakeven("explain", trial, "--k", 3, *MODEL, "--json").succeeded().json()
    assert len(values["explained"]) == 2
