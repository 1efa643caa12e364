"""Acceptance lengths that learned drafters reached elsewhere."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from breakeven.forecast.records import Published


def published(method: str) -> tuple[Published, ...]:
    """Of `eagle3`, `eagle`, `mtp` or `draft-model`, in the order of the file; none of any other method.

    Chains only, one per head, window and workload: a tree of k levels verifies more than k tokens, and is no
    measure for a chain. Lengths count the target's own token, so they are at most k + 1.
    """
    return tuple(one for one in _all() if one.method == method)


@cache
def _all() -> tuple[Published, ...]:
    """Column `row` of the file is the id in benchmarks/data/published_speedups.csv, if it is from there."""
    text = (files("breakeven.forecast") / "data" / "published_acceptance.csv").read_text("utf-8")
    return tuple(
        Published(
            row["method"],
            row["model"],
            int(row["k"]),
            float(row["acceptance_length"]),
            row["workload"],
            row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )
