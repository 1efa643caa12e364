"""Results that the acceptance does not let one expect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.acceptance.stated import Stated
from breakeven.diagnose.causes.outcome import CAUSES, faster_than_free, pays_at_low_acceptance
from breakeven.diagnose.evidence import Evidence
from breakeven.interval import Interval
from tests.unit.diagnose.compared import compared, counted, uncosted
from tests.unit.diagnose.healthy import healthy

POOR = counted((0.3, 0.1, 0.05, 0.05))
"""12.5 % accepted, 1.5 tokens a step."""


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence",
    [Evidence(), healthy(), compared(2.0), uncosted(0.8, POOR)],
    ids=["nothing known", "no speeds", "as predicted", "poor and slower"],
)
def test_nothing_is_found_where_nothing_surprises(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


@pytest.mark.parametrize("make", [compared, uncosted])
def test_poor_acceptance_and_faster_has_its_reason(make: Any) -> None:
    found = pays_at_low_acceptance(make(1.2, POOR))
    assert found and found.confidence == "high" and "12.5 % accepted" in found.title
    assert "1.50 tokens" in found.evidence and "1.25 plain steps" in found.evidence


def test_bounds_of_the_acceptance_are_printed_and_not_their_middle() -> None:
    bounds = (Stated("acceptance_rate", Interval(0.1, 0.08, 0.12), "log"),)
    seen = replace(uncosted(1.2, POOR), counters=None, stated=bounds)
    found = pays_at_low_acceptance(seen)
    assert found and "Faster with 8.0 % to 12.0 % accepted" in found.title


@pytest.mark.parametrize("make", [compared, uncosted])
def test_faster_than_its_tokens_allow_is_not_of_speculation(make: Any) -> None:
    evidence = make(1.8, POOR)
    found = faster_than_free(evidence)
    assert found and found.id == "faster_than_free" and found.confidence == "high"
    assert pays_at_low_acceptance(evidence) is None
