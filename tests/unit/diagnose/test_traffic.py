"""Work of others in the window, and ranks that report nothing."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.acceptance.prometheus import read_page
from breakeven.diagnose.causes.traffic import CAUSES, foreign_traffic, silent_ranks
from breakeven.diagnose.evidence import Evidence, Traffic
from tests.unit.diagnose.healthy import healthy, traffic


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("evidence", [healthy(), Evidence()], ids=["healthy", "nothing known"])
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


@pytest.mark.parametrize(
    ("seen", "confidence", "said"),
    [
        (traffic(requests=24, output_tokens=6000), None, ""),
        (traffic(requests=23), None, ""),
        (traffic(requests=12), "high", "finished 24 requests where 12 were asked, 100.0 % more"),
        (traffic(requests=22), "high", "9.1 % more"),
        (Traffic(traffic().load, 30, 6000), None, ""),
    ],
)
def test_requests_of_others(seen: Traffic, confidence: str | None, said: str) -> None:
    found = foreign_traffic(healthy(traffic=seen))
    assert (found and found.confidence) == confidence
    assert said in (found.evidence if found else "")


def test_a_few_among_many_are_less_telling() -> None:
    seen = traffic(requests=1000)
    found = foreign_traffic(healthy(traffic=Traffic(seen.load, 1000)))
    assert found is None
    many = Traffic(traffic().load.__class__(requests=1004), 1000)
    found = foreign_traffic(healthy(traffic=many))
    assert found and found.confidence == "medium"


@pytest.mark.parametrize(("asked", "there"), [(6000, False), (5800, False), (5000, True)])
def test_tokens_tell_where_requests_are_not_counted(asked: int, there: bool) -> None:
    seen = Traffic(traffic().load.__class__(output_tokens=6000), 24, asked)
    found = foreign_traffic(healthy(traffic=seen))
    assert (found is not None) == there
    if found:
        assert "generated 6,000 tokens where 5,000 were asked, 20.0 % more" in found.evidence


def test_who_only_looks_calls_nobody_foreign() -> None:
    assert foreign_traffic(healthy(traffic=Traffic(traffic().load))) is None


def test_both_sides_are_looked_at() -> None:
    found = foreign_traffic(healthy(baseline_traffic=traffic(requests=12)))
    assert found and found.evidence.startswith("The baseline finished 24")


@pytest.mark.parametrize(
    ("silent", "ranks", "confidence"), [(0, 4, None), (1, 4, "medium"), (2, 4, "high"), (4, 4, None)]
)
def test_silent_ranks(silent: int, ranks: int, confidence: str | None) -> None:
    found = silent_ranks(healthy(ranks=ranks, silent_ranks=silent))
    assert (found and found.confidence) == confidence
    if found:
        assert f"{silent} of 4 ranks" in found.evidence and f"the other {ranks - silent}" in found.evidence


RANKS = "".join(
    f'{name}{{engine="{rank}"}} {value}\n'
    for name in ("vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total")
    for rank, value in enumerate(("NaN", "null", "12", "40"))
)
SGLANG = "".join(f'sglang:spec_accept_length{{dp_rank="{rank}"}} 2.9\n' for rank in range(4))


def test_a_rank_is_silent_where_it_gives_no_number() -> None:
    page = read_page(RANKS)
    assert page and (page.ranks, page.silent_ranks) == (4, 2)
    assert page.spec and page.spec.drafts == 52
    whole = read_page(f"{SGLANG}sglang:spec_verify_calls_total 300\n")
    assert whole and (whole.ranks, whole.silent_ranks) == (4, 0), "counts that are of all ranks together"
