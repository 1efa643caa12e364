"""Trained drafters that do not fit, or are weak."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.diagnose.causes.head import CAUSES, DOUBTFUL, MISMATCHED, mismatched_head, weaker_head
from breakeven.diagnose.evidence import Drafting, Evidence
from breakeven.engines.speculation import LEARNED_METHODS
from breakeven.explain.records import Observation
from breakeven.forecast.published import published
from tests.unit.diagnose.compared import counted, explained
from tests.unit.diagnose.healthy import healthy
from tests.unit.explain.cases import llama

BROKEN = counted((0.035, 0.004, 0.001))
"""A mean acceptance length of 1.04."""


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(),
        healthy(),
        healthy(counters=BROKEN),
        healthy(counters=counted((0.7, 0.5, 0.3)), drafting=Drafting("eagle3", 3)),
        healthy(counters=counted((0.0,), drafts=99), drafting=Drafting("mtp", 1)),
    ],
    ids=["nothing known", "healthy", "a lookup", "a good head", "few drafts"],
)
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("eagle3", "layer ids"),
        ("eagle", "vocabulary map"),
        ("medusa", "chat template"),
        ("mtp", "quantisation"),
        ("draft_model", "same vocabulary"),
        ("draft-model", "same vocabulary"),
    ],
)
def test_a_head_that_is_never_right(method: str, says: str) -> None:
    found = mismatched_head(healthy(counters=BROKEN, drafting=Drafting(method, 3)))
    assert found and found.confidence == "high" and says in found.check and "does not fit" in found.title
    assert "1.04" in found.evidence and "3.5 % of drafts" in found.evidence and found.next_command


def test_a_head_that_is_seldom_right_is_doubtful() -> None:
    found = mismatched_head(healthy(counters=counted((0.2, 0.02)), drafting=Drafting("eagle", 2)))
    assert found and found.confidence == "medium" and "may not fit" in found.title


def test_what_is_said_of_published_lengths_is_of_those_that_are_kept() -> None:
    found = mismatched_head(healthy(counters=counted((0.28,)), drafting=Drafting("draft_model", 1)))
    lengths = [one.acceptance_length for method in LEARNED_METHODS for one in published(method)]
    assert found and found.title == "The draft model may not fit the model it drafts for"
    assert f"the {len(lengths)} lengths" in found.evidence and f"below {min(lengths):g}." in found.evidence


@pytest.mark.parametrize(
    ("rates", "there"), [((0.5, 0.2, 0.1, 0.1), True), ((0.7, 0.5, 0.4, 0.2), False), ((0.0,) * 4, False)]
)
def test_a_head_that_is_weaker_than_published(rates: tuple[float, ...], there: bool) -> None:
    """3.08 of EAGLE-3 for Llama-3.1-8B at a window of 4."""
    case = llama(Observation("x", 0.007, 0.005))
    evidence = explained(case, counters=counted(rates), drafting=Drafting("eagle3", 4))
    found = weaker_head(evidence)
    assert (found is not None) == there
    if found:
        assert found.confidence == "low" and "3.08" in found.evidence and "vllm#20780" in found.evidence
    assert weaker_head(explained(case, counters=counted(rates), drafting=Drafting("eagle3", 7))) is None


def test_no_published_length_is_as_low_as_the_limits_say() -> None:
    lengths = [one.acceptance_length for method in LEARNED_METHODS for one in published(method)]
    assert len(lengths) >= 40 and min(lengths) > 1.8 > DOUBTFUL > MISMATCHED
