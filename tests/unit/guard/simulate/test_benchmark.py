"""The command benchmarks/guard.py: its floors on recorded outputs, and files that are not there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.guard.simulate.texts import write_record

BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "guard.py"
TRACES = BENCHMARK.parents[2] / "shared" / "data"
COSTS = ["dense-8b-h100", "moe-vllm-cpu", "moe-llamacpp", "kimi-k2.5", "kimi-k2.5-flat"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_guard_holds_its_floors_on_recorded_outputs():
    files = sorted(TRACES.glob("specdecode_bench_*.jsonl"))
    if not files:
        pytest.skip("the recorded outputs are not in a folder shared/data beside the repository")
    done = run(*files, "--json", "--concurrency")
    found = json.loads(done.stdout)
    assert (done.returncode, found["failures"]) == (0, [])
    assert [row["cost"] for row in found["rows"]] == [cost for cost in COSTS for _ in files]
    for row in found["rows"]:
        assert row["of_best_fixed"] >= 0.98
        assert row["guard"]["worst"] >= 0.98
        assert row["guard_epsilon_1_percent"]["worst"] >= 0.99
        assert row["test_and_set"]["speedup"] <= row["guard"]["speedup"] <= row["oracle"]["speedup"]


def test_any_record_will_do_and_floors_can_fail(tmp_path: Path):
    record = write_record(tmp_path / "record.jsonl", requests=6)
    found = json.loads(run(record, tmp_path / "none.jsonl", "--json", "--concurrency", 2).stdout)
    assert [row["record"] for row in found["rows"]] == ["record"] * len(COSTS)
    assert [row["by_concurrency"][0]["concurrency"] for row in found["rows"]] == [2] * len(COSTS)
    timid = run(record, "--epsilon", 0, "--json", "--concurrency")
    assert timid.returncode == 1 and "of the best fixed setting, below 0.98" in timid.stderr


def test_without_any_record_it_says_what_to_type(tmp_path: Path):
    done = run(tmp_path / "none.jsonl")
    assert done.returncode == 2
    assert "skipped: there is no" in done.stderr and "type  python benchmarks/guard.py FILE" in done.stderr
