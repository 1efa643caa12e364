import csv
from pathlib import Path

import pytest

from breakeven.forecast import published as module
from breakeven.forecast.published import published

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "data" / "published_speedups.csv"
FILE = Path(module.__file__).parent / "data" / "published_acceptance.csv"
METHODS = {
    "eagle3": {"eagle3", "eagle3-mla", "eagle3.1-mla"},
    "eagle": {"eagle"},
    "mtp": {"mtp"},
    "draft-model": {"draft"},
}
"""By method: what the benchmark calls it."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


TAKEN = [row for row in rows(FILE) if row["row"]]


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row["row"])
def test_each_row_equals_that_of_the_benchmark(row: dict[str, str]):
    there = next(one for one in rows(BENCHMARK) if one["id"] == row["row"])
    assert there["method"] in METHODS[row["method"]]
    assert (row["model"], row["k"]) == (there["model"], there["k"])
    assert float(row["acceptance_length"]) == float(there["tau"])
    assert row["workload"] == ("not stated" if there["workload"] == "?" else there["workload"])
    assert row["source"] == f"{there['source']}, {there['url']}"


def test_every_head_with_a_window_and_a_length_is_there_once():
    methods = set().union(*METHODS.values())
    there = [one for one in rows(BENCHMARK) if one["method"] in methods and one["tau"] and one["k"]]
    first = {(one["method"], one["model"], one["k"], one["workload"]) for one in there}
    assert len(TAKEN) == len(first) + 1  # one head's length differs between batches of 1 and 128


def test_lengths_are_possible():
    for method in METHODS:
        found = published(method)
        assert found
        for one in found:
            assert one.method == method
            assert 1 < one.acceptance_length <= one.k + 1
            assert "https://" in one.source


def test_all_of_the_file_are_of_a_known_method():
    assert sum(len(published(method)) for method in METHODS) == len(rows(FILE))
    assert published("vllm-ngram") == ()
