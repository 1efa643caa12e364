"""What the tables of a diagnosis hold."""

from __future__ import annotations

import pytest

from breakeven.diagnose.evidence import Drafting, Evidence
from breakeven.explain.records import Observation
from breakeven.report.diagnose_tables import step_bounds

NGRAM = Evidence(drafting=Drafting("ngram", 5))


@pytest.mark.parametrize(
    ("seen", "bounds"),
    [
        (Observation("chat", 0.02, 0.01, (0.2, 0.4)), (0.01, 0.03)),
        (Observation("chat", 0.02, 0.01, (0.2, 0.4), (0.5, 0.5), 2.0), (0.012, 0.014)),
        (Observation("chat", 0.02, 0.01, (0.2, 0.4), (0.5, 0.5), 2.0, 1.25), (0.0125, 0.0125)),
    ],
    ids=["any share drafts", "shorter drafts than the window", "tokens per step are counted"],
)
def test_what_a_step_took(seen: Observation, bounds: tuple[float, float]) -> None:
    assert step_bounds(NGRAM, seen) == pytest.approx(bounds)


def test_without_a_window_nothing_bounds_it() -> None:
    assert step_bounds(Evidence(), Observation("chat", 0.02, 0.01, (0.2, 0.4))) is None
