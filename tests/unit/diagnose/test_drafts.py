"""Drafts that are rare, or not those of the configured drafter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.diagnose.causes.drafts import CAUSES, accepted_less, drafted_less, drafts_rare, longest_only
from breakeven.diagnose.evidence import Drafting, Evidence, Replayed
from tests.unit.diagnose.compared import compared, counted, uncosted
from tests.unit.diagnose.healthy import COUNTERS, healthy
from tests.unit.diagnose.test_window import setting

RARE = replace(counted((0.5, 0.4, 0.3, 0.2), drafts=200), steps=2400)
"""A twelfth of all steps drafts."""
ONLY_4 = Drafting("ngram", 4, 4, 4)
"""As prompt_lookup_max 4 alone comes to work."""
BETTER = Replayed(setting(4, 0.95, (4, 4), share=0.1), (setting(4, 0.75, (2, 4), share=0.6),))

UNPRICED = Replayed(setting(4, None, (4, 4), share=0.34), (setting(4, None, (2, 4), share=0.6),))


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(),
        healthy(),
        compared(2.0),
        healthy(replayed=Replayed(setting(4, None, share=0.7), (setting(4, None, (1, 3), share=0.9),))),
        healthy(counters=counted((0.9, 0.8)), drafting=Drafting("eagle3", 2)),
        healthy(counters=replace(RARE, steps=60, drafts=3)),
    ],
    ids=["nothing known", "healthy", "compared", "replayed alike", "a head", "too few steps"],
)
def test_nothing_is_found_where_nothing_is_wrong(cause: Any, evidence: Evidence) -> None:
    assert cause(evidence) is None


@pytest.mark.parametrize("drafting", [ONLY_4, Drafting("ngram", 4, None, 4)])
def test_one_length_of_match_alone(drafting: Drafting) -> None:
    evidence = healthy(counters=RARE, drafting=drafting)
    found = longest_only(evidence)
    assert found and found.confidence == "high" and "exactly 4 tokens" in found.title
    assert "8.3 % of steps drafted" in found.evidence
    assert drafts_rare(evidence) is None, "it is said once"


def test_matches_of_one_length_that_draft_often_are_not_called_rare() -> None:
    often = replace(COUNTERS, drafts=816)
    uncertain = healthy(counters=often, drafting=ONLY_4, replayed=UNPRICED)
    found = longest_only(uncertain)
    assert found and found.confidence == "medium"
    assert found.title == "Only matches of exactly 4 tokens are looked up"
    priced = longest_only(replace(uncertain, replayed=BETTER))
    assert priced and priced.confidence == "high" and "rare" not in priced.title
    slower = longest_only(uncosted(0.8, often, drafting=ONLY_4, replayed=UNPRICED))
    assert slower and slower.confidence == "high"


def test_where_nothing_was_drafted_speculation_may_be_off() -> None:
    assert drafts_rare(healthy(counters=SpecCounters(2400, 0, 0, 0, (), "vLLM log"))) is None


def test_what_nobody_did_is_not_said() -> None:
    by_hand = longest_only(healthy(counters=RARE, drafting=ONLY_4))
    left_out = longest_only(healthy(counters=RARE, drafting=replace(ONLY_4, min_left_out=True)))
    assert by_hand and by_hand.evidence.startswith("Only matches of exactly 4 tokens are looked up")
    assert left_out and left_out.evidence.startswith("Setting prompt_lookup_max 4 without prompt_lookup_min")


def test_the_better_range_is_named_with_what_it_gives() -> None:
    found = longest_only(healthy(counters=RARE, drafting=ONLY_4, replayed=BETTER))
    assert found and "of 2 to 4 tokens would draft in 60.0 % of steps instead of 10.0 %" in found.evidence
    assert "at 0.75 plain steps a token" in found.evidence


@pytest.mark.parametrize(
    "evidence",
    [
        healthy(drafting=ONLY_4),
        healthy(counters=RARE, drafting=Drafting("ngram", 4, 1, 1)),
        healthy(counters=RARE, drafting=Drafting("ngram", 4, 2, 4)),
        healthy(counters=RARE, drafting=ONLY_4, engine="sglang"),
        healthy(counters=RARE, drafting=replace(ONLY_4, method="suffix")),
    ],
    ids=["it drafts often", "one token", "a range", "another engine", "another method"],
)
def test_one_length_of_match_is_no_fault_by_itself(evidence: Evidence) -> None:
    assert longest_only(evidence) is None


def test_without_counts_it_is_likely_unless_the_server_is_fast() -> None:
    unknown = SpecCounters(None, 500, 2000, 1000, None, "vLLM /metrics")
    found = longest_only(healthy(counters=unknown, drafting=ONLY_4))
    assert found and found.confidence == "medium"
    assert longest_only(uncosted(1.5, unknown, drafting=ONLY_4)) is None


def test_rare_drafts() -> None:
    found = drafts_rare(healthy(counters=RARE))
    assert found and found.confidence == "medium" and "8.3 % of steps" in found.title
    assert drafts_rare(uncosted(1.1, RARE)) is None, "it pays as it is"


def test_long_drafts_may_be_rare() -> None:
    """As of an ngram-mod that drafts 64 tokens in every thirtieth step."""
    counters = SpecCounters(3000, 100, 6400, 4200, None, "llama.cpp log")
    assert (
        drafts_rare(healthy(counters=counters, engine="llama.cpp", drafting=Drafting("ngram-mod", 64)))
        is None
    )


def test_rare_drafts_and_the_range_that_would_draft_more() -> None:
    found = drafts_rare(healthy(counters=RARE, drafting=Drafting("ngram", 4, 3, 5), replayed=BETTER))
    assert found and found.confidence == "high" and "n-grams of 2 to 4 tokens" in found.evidence
    assert found.next_command == "breakeven engine vllm --method ngram --k 4 --min-n 2 --max-n 4"


def test_a_range_that_drafts_more_and_costs_more_is_not_named() -> None:
    dearer = Replayed(setting(4, 0.95, share=0.1), (setting(4, 1.05, (1, 2), share=0.9, rate=0.05),))
    found = drafts_rare(healthy(counters=RARE, replayed=dearer))
    assert found and "No other n range does better" in found.evidence and "--sweep" in found.next_command


def test_another_window_is_no_better_range() -> None:
    other = Replayed(setting(4, 0.95, (4, 4), share=0.1), (setting(8, 0.5, (4, 4), share=0.2),))
    found = drafts_rare(healthy(counters=RARE, replayed=other))
    assert found and "No other n range does better" in found.evidence


def test_without_a_cost_the_range_that_emits_most_is_named() -> None:
    some, more = setting(4, None, (2, 3), share=0.3), setting(4, None, (1, 3), share=0.4)
    found = drafts_rare(healthy(counters=RARE, replayed=Replayed(setting(4, None, share=0.1), (some, more))))
    assert found and "of 1 to 3 tokens" in found.evidence and "plain steps a token" not in found.evidence


def test_drafts_that_the_server_does_not_make() -> None:
    replayed = Replayed(setting(4, None, share=0.9))
    found = drafted_less(healthy(counters=replace(COUNTERS, drafts=600, steps=2400), replayed=replayed))
    assert found and found.confidence == "high"
    assert "90.0 %" in found.evidence and "25.0 %" in found.evidence
    found = drafted_less(healthy(counters=replace(COUNTERS, drafts=1200), replayed=replayed))
    assert found and found.confidence == "medium"
    assert drafted_less(healthy(replayed=replayed)) is None, "66.7 % of 90 % is near enough"


def test_drafts_that_the_server_does_not_accept() -> None:
    low = replace(COUNTERS, accepted_tokens=1280)
    found = accepted_less(healthy(counters=low, replayed=Replayed(setting(4, None, rate=0.5))))
    assert found and found.confidence == "high" and "20.0 %" in found.evidence and "50.0 %" in found.evidence
    assert accepted_less(healthy(replayed=Replayed(setting(4, None, rate=0.55)))) is None


@pytest.mark.parametrize(("steps", "there"), [(100, False), (1000, True)])
def test_shares_that_chance_can_bring_so_far_apart_are_alike(steps: int, there: bool) -> None:
    """5 % beside 10 % of 1,000 steps: 2.1 standard errors, or 4.3."""
    seen = replace(COUNTERS, steps=steps, drafts=steps // 20)
    found = drafted_less(healthy(counters=seen, replayed=Replayed(setting(4, None, share=0.1))))
    assert (found is not None) == there


def test_shares_of_no_known_number_are_less_sure() -> None:
    stated = healthy(counters=replace(COUNTERS, drafts=None, accepted_tokens=1280))
    found = accepted_less(replace(stated, replayed=Replayed(setting(4, None, rate=0.5))))
    assert found and found.confidence == "medium"


def test_a_replay_of_few_drafts_tells_nothing() -> None:
    few = Replayed(setting(4, None, share=0.09, rate=1.0))
    assert accepted_less(healthy(counters=replace(COUNTERS, accepted_tokens=100), replayed=few)) is None
