"""The command benchmarks/published.py: its accuracy on the file it ships with, and any other file."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breakeven.cost.drafting import FITTED_HEADS

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SHIPPED = BENCHMARKS / "data" / "published_speedups.csv"
HEADER = "id,source,model,hardware,tp,engine,method,k,batch,accept_rate,tau,baseline,unit,speedup"
ONE = next(csv.DictReader([HEADER, "1,x,llama-3.1-8b,h100-sxm,1,e,eagle,3,1,0.5,,100,tok/s,1.5"]))


def run(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "published.py"), str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def figures(file: Path) -> dict[str, Any]:
    done = run(file, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def written(folder: Path, *records: dict[str, str]) -> Path:
    file = folder / "rows.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return file


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    copy = tmp_path_factory.mktemp("published") / "copy.csv"
    copy.write_bytes(SHIPPED.read_bytes())
    return figures(copy)


def test_one_anchor_predicts_within_3_percent_and_8_at_worst(shipped: dict[str, Any]):
    errors = shipped["errors"]
    assert errors["fitted"]["predictions"] >= 20
    for key in ("fitted", "leave_one_row_out"):
        assert errors[key]["mean"] <= 0.03
        assert errors[key]["worst"] <= 0.08
    assert errors["naive"]["mean"] > 10 * errors["fitted"]["mean"]


def test_fitted_constants_are_few_beside_the_rows(shipped: dict[str, Any]):
    assert shipped["fitted_constants"] * 4 <= shipped["errors"]["fitted"]["predictions"]


def test_the_model_alone_is_within_its_bounds_but_for_one_early_engine(shipped: dict[str, Any]):
    plain = shipped["plain_steps"]
    assert plain["steps"] - plain["within_bounds"] == 1
    assert plain["outside"][0].startswith("sglang#3582")
    assert plain["measured_by_modelled"]["one_dense"] == pytest.approx([1.0, 1.0], abs=0.1)


def test_every_row_is_counted_doubtful_or_unused_with_a_reason(shipped: dict[str, Any]):
    with SHIPPED.open(newline="") as file:
        ids = [record["id"] for record in csv.DictReader(file)]
    kinds = ("counted", "doubtful", "unused")
    assert sorted(row["id"] for kind in kinds for row in shipped[kind]) == sorted(ids)
    assert all(row["doubt"] for row in shipped["doubtful"])
    assert all(row["reason"] for row in shipped["unused"])


def test_results_are_those_of_the_shipped_file(shipped: dict[str, Any]):
    kept = json.loads((BENCHMARKS / "results" / "published.json").read_text())
    assert kept["errors"]["fitted"] == pytest.approx(shipped["errors"]["fitted"])


def test_shipped_drafter_times_are_the_fit(shipped: dict[str, Any]):
    heads = {f"{head.published_engine} {head.method}": head.ms_per_token for head in FITTED_HEADS}
    assert heads == pytest.approx(shipped["drafter_ms_per_token"], abs=5e-4)


def test_a_row_alone_with_its_drafter_is_in_no_error(tmp_path: Path):
    found = figures(written(tmp_path, ONE))
    assert found["alone"] == ["1"]
    assert found["errors"]["fitted"]["predictions"] == 0
    assert found["counted"][0]["acceptance_length"] == 2.5
    assert found["counted"][0]["error"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"method": "eagle3 topk4"}, "a tree"),
        ({"method": "ngram"}, "no share of drafted steps"),
        ({"accept_rate": ""}, "no acceptance length"),
        ({"accept_rate": "0.1-0.3"}, "accept rate not a number"),
        ({"k": ""}, "no window"),
        ({"k": "9" * 5000}, "no window"),
        ({"batch": "QPS1"}, "concurrency not stated"),
        ({"unit": "x"}, "no anchor"),
        ({"model": "gpt-9"}, "no preset for the model: gpt-9"),
        ({"hardware": "?"}, "no preset for the hardware"),
        ({"tp": ""}, "number of devices not stated"),
        ({"speedup": "0"}, "no speedup"),
        ({"baseline": "nan"}, "no baseline"),
    ],
)
def test_a_row_that_lacks_something_says_what(tmp_path: Path, change: dict[str, str], reason: str):
    found = figures(written(tmp_path, ONE | change))
    assert reason in found["unused"][0]["reason"]
    assert found["counted"] == []


def test_throughput_at_a_concurrency_is_doubtful(tmp_path: Path):
    assert "throughput" in figures(written(tmp_path, ONE | {"batch": "8"}))["doubtful"][0]["doubt"]


def test_the_table_names_every_row(tmp_path: Path):
    other = ONE | {"id": "7", "speedup": "1.6"}
    done = run(written(tmp_path, ONE, other, ONE | {"id": "9", "k": ""}))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["1", "7", "9"]


def test_a_file_without_the_columns_or_none_at_all_is_refused(tmp_path: Path):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    done = run(file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no column id, source" in done.stderr
    assert run(tmp_path / "absent.csv").returncode == 2
    file.write_bytes(b"\xff\xfe\x00")
    assert run(file).returncode == 2


def test_a_file_of_no_rows_and_a_row_cut_short(tmp_path: Path):
    file = tmp_path / "rows.csv"
    file.write_text(HEADER + "\n")
    assert figures(file)["errors"]["fitted"] == {"predictions": 0, "mean": None, "worst": None}
    assert run(file).returncode == 0
    file.write_text(HEADER + "\n1,x,llama-3.1-8b\n")
    assert figures(file)["unused"][0]["reason"] == "no window"
