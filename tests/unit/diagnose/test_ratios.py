"""Ratios of the evidence, and its two speeds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.stated import Stated
from breakeven.cost.drafting import is_lookup
from breakeven.diagnose.evidence import Drafting, Evidence
from breakeven.diagnose.ratios import (
    draft_bounds,
    draft_share,
    is_head,
    ratio_of,
    step_ratio,
    tokens_per_step,
)
from breakeven.diagnose.speeds import is_slower, speedup
from breakeven.interval import Interval
from tests.unit.diagnose.compared import explained, uncosted
from tests.unit.diagnose.healthy import COUNTERS, healthy
from tests.unit.explain.cases import kimi


@pytest.mark.parametrize(
    ("method", "lookup", "head"),
    [
        ("ngram", True, False),
        ("ngram_gpu", True, False),
        ("suffix", True, False),
        ("ngram-map-k", True, False),
        ("eagle3", False, True),
        ("deepseek_mtp", False, True),
        ("draft_model", False, True),
        ("dflash", False, True),
        ("custom_class", False, False),
    ],
)
def test_what_kind_of_drafter_a_method_is(method: str, lookup: bool, head: bool) -> None:
    assert (is_lookup(method), is_head(method)) == (lookup, head)


def test_a_ratio_comes_with_the_bounds_of_its_source() -> None:
    rounded = Interval(0.5, 0.495, 0.505)
    evidence = replace(healthy(), stated=(Stated("acceptance_rate", rounded, "vLLM log"),))
    assert ratio_of(evidence, "acceptance_rate") == rounded
    assert ratio_of(evidence, "draft_share") == Interval(2 / 3, 2 / 3, 2 / 3)
    assert ratio_of(Evidence(), "draft_share") is None


def test_a_head_drafts_in_every_step() -> None:
    assert draft_share(Evidence(drafting=Drafting("mtp", 1))) == Interval(1, 1, 1)
    assert draft_share(Evidence(drafting=Drafting("ngram", 1))) is None


def test_tokens_of_a_step_without_its_share_of_drafts() -> None:
    """2 accepted tokens a draft: 1 to 3 tokens a step."""
    no_steps = replace(COUNTERS, steps=None)
    found = tokens_per_step(healthy(counters=no_steps))
    assert found and (found.low, found.high) == (1, 3)
    head = tokens_per_step(healthy(counters=no_steps, drafting=Drafting("eagle3", 4)))
    assert head and (head.low, head.high) == (3, 3)
    rate = SpecCounters(drafted_tokens=100, accepted_tokens=50)
    found = tokens_per_step(healthy(counters=rate, drafting=Drafting("mtp", 1)))
    assert found and found.low == found.high == 1.5


def test_two_speeds_that_may_not_be_compared_are_not() -> None:
    assert speedup(explained(kimi(refused="too few requests"))) is None
    assert is_slower(explained(kimi())) is True


@given(st.floats(0.2, 4.0))
def test_a_step_takes_what_its_tokens_and_the_speeds_say(gain: float) -> None:
    found = step_ratio(uncosted(gain, COUNTERS))
    assert found and found.low == pytest.approx((1 + 3200 / 2400) / gain) == found.high


def test_a_share_that_is_not_known_is_any() -> None:
    assert draft_bounds(healthy(counters=replace(COUNTERS, steps=None))) == (0, 1)
    assert draft_bounds(Evidence(drafting=Drafting("mtp", 1))) == (1, 1)
    rounded = Stated("draft_share", Interval(0.5, 0.4, 0.6), "by output tokens")
    assert draft_bounds(healthy(stated=(rounded,))) == (0.4, 0.6)
