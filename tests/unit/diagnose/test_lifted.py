"""Causes that explain finds, kept from servers that have nothing wrong."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.diagnose.causes.lifted import CAUSES, drafter_time, steps_unlike, verification_too_dear
from breakeven.diagnose.evidence import Drafting, Evidence
from tests.unit.diagnose.compared import compared, counted, explained
from tests.unit.diagnose.healthy import healthy
from tests.unit.diagnose.test_window import FADING, LONG
from tests.unit.explain.cases import kimi


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence", [Evidence(), healthy(), compared(2.0)], ids=["nothing known", "no case", "as predicted"]
)
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


def test_verification_that_is_too_dear() -> None:
    found = verification_too_dear(compared(0.9, counted((0.02, 0.01, 0.0, 0.0)), LONG))
    assert found and found.confidence == "high"


def test_it_is_not_said_where_the_window_or_the_head_is_why() -> None:
    long = compared(0.9, counted(FADING), LONG, drafting=Drafting("ngram", 16, 2, 4))
    assert long.explanation and any(one.id == "verification_too_dear" for one in long.explanation.findings)
    assert verification_too_dear(long) is None
    head = compared(0.8, counted((0.03, 0.01)), LONG, drafting=Drafting("eagle3", 2))
    assert head.explanation and any(one.id == "verification_too_dear" for one in head.explanation.findings)
    assert verification_too_dear(head) is None


def test_what_the_published_experiment_leaves_open() -> None:
    evidence = explained(kimi())
    assert drafter_time(evidence) and steps_unlike(evidence)


def test_a_percent_slower_is_not_slower() -> None:
    nearly = compared(0.99, counted((0.02, 0.01, 0.0, 0.0)), LONG)
    assert nearly.explanation and any(
        one.id == "verification_too_dear" for one in nearly.explanation.findings
    )
    assert verification_too_dear(nearly) is None
