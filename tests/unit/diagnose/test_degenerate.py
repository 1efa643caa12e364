"""Replies that loop inflate acceptance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.diagnose.causes.degenerate import CAUSES, drafted_by_loops, looping_output, nan_output
from breakeven.diagnose.evidence import Drafting, Evidence, Replayed
from tests.unit.diagnose.healthy import COUNTERS, healthy, log, replies
from tests.unit.diagnose.test_window import setting

PAGE = replace(COUNTERS, source="vLLM /metrics")


def looping(n: int, tokens: int, **changes: Any) -> Any:
    ids = tuple(f"p{i}#0" for i in range(n))
    return replies(**{"looping": ids, "looping_tokens": tokens, "loop_periods": (2, 2), **changes})


@pytest.mark.parametrize("evidence", [healthy(), Evidence()], ids=["healthy", "nothing known"])
def test_nothing_is_found_where_nothing_is_wrong(evidence: Evidence) -> None:
    assert [cause(evidence) for cause in CAUSES] == [None, None]


@pytest.mark.parametrize(
    ("tokens", "confidence"),
    [(100, None), (419, None), (420, "medium"), (1578, "medium"), (1579, "high"), (6000, "high")],
)
def test_by_the_share_of_drafted_tokens_in_loops(tokens: int, confidence: str | None) -> None:
    """4 tokens of a draft, in two thirds of all steps, half of them accepted."""
    found = looping_output(healthy(replies=looping(3, tokens)))
    assert (found and found.confidence) == confidence


def test_the_figures_are_said() -> None:
    found = looping_output(healthy(replies=looping(9, 3000)))
    assert found
    said = "9 of 24 replies of the candidate end in a loop of 2 tokens, 50.0 % of its tokens"
    assert f"{said} and at least 41.2 % of what is drafted" in found.evidence


def test_a_baseline_that_loops_makes_a_replay_of_it_too_good() -> None:
    found = looping_output(healthy(baseline_replies=looping(9, 3000, loop_periods=(1, 12))))
    assert found and "of the baseline end in a loop of 1 to 12 tokens" in found.evidence


def test_text_that_seldom_drafts_lets_few_loops_weigh_much() -> None:
    """Of 10,000 tokens 500 are in loops; the rest takes 9,500 / 1.1 steps, a tenth of which drafts 5 each."""
    rare = SpecCounters(1000, 100, 500, 100, None, "vLLM /metrics")
    evidence = healthy(counters=rare, drafting=Drafting("ngram", 5, 2, 4))
    loops, text = 500 / 6 * 5, 9500 / 1.1 * 0.1 * 5
    assert drafted_by_loops(evidence, 0.05) == pytest.approx(loops / (loops + text))
    assert looping_output(replace(evidence, replies=looping(2, 300)))


def test_what_is_not_known_is_as_in_the_loops() -> None:
    assert drafted_by_loops(Evidence(drafting=Drafting(k=5)), 0.3) == pytest.approx(0.3)
    assert drafted_by_loops(Evidence(), 0.3) == 0.3 and drafted_by_loops(healthy(), 0.0) == 0.0


def test_the_source_that_still_holds_them_is_named() -> None:
    found = looping_output(healthy(replies=looping(9, 3000, count_drafts=True)))
    assert found and "leave them out; they are in vLLM /metrics," in found.evidence
    found = looping_output(healthy(replies=looping(9, 3000), counters=PAGE, other_sources=()))
    assert found and "loop. They are in vLLM /metrics," in found.evidence
    replayed = healthy(baseline_replies=looping(9, 3000), replayed=Replayed(setting(4, None)))
    found = looping_output(replayed)
    assert found and found.evidence.endswith("They are in the replay, and what that says is not of real text")


def test_without_counted_tokens_replies_are_counted() -> None:
    found = looping_output(healthy(replies=looping(9, 0, checked_tokens=0)))
    assert found and "of its tokens" not in found.evidence
    assert looping_output(healthy(replies=looping(1, 0, checked_tokens=0))) is None


def test_no_numbers_in_the_log() -> None:
    found = nan_output(healthy(baseline_log=log({"nan": (3, "NaN detected in logits")})))
    assert found and "3 lines in the log of the baseline (NaN detected in logits)" in found.evidence
