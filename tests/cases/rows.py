"""Rows of cases.csv, and which of them a module has tests of."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

CASES = Path(__file__).with_name("cases.csv")


def assert_every_row_has_its_test(area: str, names: Iterable[str]) -> None:
    """Names like `test_case_34_mlx_vlm_2324_…`: the row's number, its repository and its issue."""
    with CASES.open(newline="") as file:
        rows = {int(row["id"]): row["source"] for row in csv.DictReader(file) if row["area"] == area}
    found = [re.match(r"test_case_(\d+)_(.*)", name) for name in names if name.startswith("test_case_")]
    tests = {int(one.group(1)): one.group(2) for one in found if one}
    assert rows.keys() == tests.keys() and rows
    for number, source in rows.items():
        repository, issue = source.lower().split("#")
        assert issue in tests[number] and re.sub(r"\W", "_", repository) in tests[number]
