"""`breakeven guard simulate` on a run of the embedded engine, and as typed wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.command import breakeven
from tests.e2e.test_forecast_cli import OWN, calibrated
from tests.unit.guard.simulate.texts import write_record

SMALL = ("--ks", "1,4", "--n-ranges", "2-4", "--jobs", "1")
STABLE = {
    *("guard", "best_fixed", "of_best_fixed", "test_and_set", "oracle", "by_epsilon", "by_concurrency"),
    *("fixed", "engine", "has_seam", "settings", "source_of_cost", "warnings", "definitions"),
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(tmp_path_factory.mktemp("record") / "outputs.jsonl")


def test_a_record_and_a_calibration(record: Path, tmp_path: Path):
    curve = calibrated(tmp_path / "calibration.json")
    done = breakeven(
        *("guard", "simulate", record, "--calibration", curve, *SMALL, "--concurrency", "1,4", "--json")
    ).succeeded()
    found = done.json()
    assert found.keys() >= STABLE
    assert found["source_of_cost"] == "measured"
    assert found["guard"]["worst"]["speedup"] > 0.97
    assert found["oracle"]["speedup"] >= found["guard"]["speedup"]
    assert [one["concurrency"] for one in found["by_concurrency"]] == [4]


def test_words_and_a_page(record: Path, tmp_path: Path):
    page = tmp_path / "guard.html"
    done = breakeven("guard", "simulate", record, *OWN, *SMALL, "--html", page).succeeded()
    assert "best fixed" in done.out and "test-and-set" in done.out and "oracle" in done.out
    assert f"Report: {page}" in done.out
    assert "Gain against ε" in page.read_text()


def test_llamacpp_has_no_seam(record: Path):
    done = breakeven(
        *("guard", "simulate", record, *OWN, "--engine", "llama.cpp", "--ks", "4"),
        *("--n-ranges", "2-4", "--jobs", "1", "--drafter", "llamacpp-ngram-simple"),
    ).succeeded()
    assert "llama.cpp has no seam for a guard. Its best static setting is llamacpp-ngram-simple" in " ".join(
        done.out.split()
    )


def test_what_is_wrong_says_what_to_type(record: Path, tmp_path: Path):
    breakeven("guard", "simulate", record).refused(2, "the cost of a step is not known")
    breakeven("guard", "simulate", tmp_path / "none", *OWN).refused(2, "there is no file or folder")
    type_share = "is no share from 0 to below 1: type  --epsilon 2%"
    for words in (("simulate", record, *OWN), ("vllm-config",)):
        for share in ("150%", "-1%", "nan", "a lot"):
            breakeven("guard", *words, "--epsilon", share).refused(2, type_share)
        breakeven("guard", *words, "--epsilon", "3").refused(2, "type  --epsilon 3%  or  --epsilon 0.03")
    breakeven("guard", "simulate", record, *OWN, "--epsilons", "two").refused(2, "type  --epsilons 1%,2%")
    error = breakeven("guard", "simulate", record, "--json")
    assert error.code == 2 and "cost of a step" in json.loads(error.out)["error"]
