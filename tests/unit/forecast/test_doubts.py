"""What a record makes doubtful."""

import pytest

from breakeven.forecast.doubts import doubts
from tests.unit.forecast.costs import record

SHORT, LONG = [(0, 0)] * 10, [(0, 0)] * 90


def test_a_record_with_enough_of_everything_has_none():
    requests, _ = record([SHORT] * 40, ["a", "b"] * 20)
    assert doubts(requests, (1, 4)) == []


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        (["a"], "the record has one request"),
        (["a", "b", "b"], "a has one request"),
        (["a", "", "c", "c"], "a, (none) have each one request"),
        (list("abcdef"), "6 categories have each one request"),
    ],
)
def test_what_has_a_single_request_shows_no_spread(categories: list[str], words: str):
    requests, _ = record([SHORT] * len(categories), categories)
    said = next(one for one in doubts(requests, (1,)) if "single request" in one)
    assert said.startswith(f"{words}: an interval of a single request holds the error of the cost alone")


def test_the_longest_output_rules_from_a_concurrency_on():
    requests, _ = record([SHORT] * 20 + [LONG])
    (said,) = doubts(requests, (1, 2, 4, 8))
    assert said.startswith("from concurrency 2 on, the longest output (90 tokens)")
