"""The command benchmarks/throughput.py: its accuracy on the file it ships with, and bad files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SHIPPED = BENCHMARKS / "data" / "measured_ngram_llama31_8b.csv"
TRACES = BENCHMARKS.parents[1] / "shared" / "data"
HEADER = "method,dataset,num_speculative_tokens,batch,measured_speedup"


def run(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "throughput.py"), str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    for name in ("gsm8k", "sharegpt"):
        if not (TRACES / f"specdecode_bench_{name}.jsonl").exists():
            pytest.skip("the recorded outputs are not in a folder shared/data beside the repository")
    done = run(shutil.copy(SHIPPED, tmp_path_factory.mktemp("throughput") / "rows.csv"), "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("prediction", ["refitted", "published_constants", "leave_one_dataset_out"])
def test_all_rows_are_met(shipped: dict[str, Any], prediction: str):
    error = shipped["errors"][prediction]
    assert error["predictions"] == 8
    assert error["mean"] <= 0.04
    assert error["worst"] <= 0.08


def test_it_beats_the_study_where_that_is_known(shipped: dict[str, Any]):
    rows = [row for row in shipped["rows"] if row["study_simulator"] is not None]
    assert len(rows) == 4
    for row in rows:
        off = {key: abs(row[key] / row["measured"] - 1) for key in ("refitted", "study_simulator")}
        assert off["refitted"] < off["study_simulator"]


@pytest.mark.usefixtures("shipped")
def test_the_fit_finds_what_a_drafted_step_costs_and_sees_small_batches_alone(tmp_path: Path):
    """Two rows as slow as a millisecond more on each drafted step would make them, and an absurd third."""
    file = tmp_path / "rows.csv"
    file.write_text(f"{HEADER}\nngram,gsm8k,3,1,1.132\nngram,gsm8k,3,16,1.110\nngram,gsm8k,3,20,0.5\n")
    found = json.loads(run(file, "--json").stdout)
    assert found["fitted_drafted_step_ms"] == pytest.approx(1.0, abs=0.1)
    assert found["errors"]["leave_one_dataset_out"]["predictions"] == 0


def test_cut_off_outputs_are_told(shipped: dict[str, Any]):
    assert shipped["outputs"]["gsm8k k=3"]["cut_off"] == 0
    assert shipped["outputs"]["sharegpt k=3"]["cut_off"] == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEADER}\nngram,nowhere,3,1,1.2\n", "specdecode_bench_nowhere.jsonl"),
        (f"{HEADER}\neagle,gsm8k,3,1,1.2\n", "method eagle"),
        (f"{HEADER}\nngram,gsm8k,3,many,1.2\n", "many"),
        (f"{HEADER}\nngram,gsm8k,3,0,1.2\n", "above 0"),
        ("a,b\n1,2\n", "num_speculative_tokens"),
        (f"{HEADER}\n", "needs rows"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, says: str):
    file = tmp_path / "rows.csv"
    file.write_text(text)
    done = run(file)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_refused(tmp_path: Path):
    done = run(tmp_path / "none.csv")
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
