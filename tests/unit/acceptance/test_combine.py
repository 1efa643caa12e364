from dataclasses import replace

import pytest

from breakeven.acceptance.combine import complete, total
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load

REPLY = SpecCounters(steps=90, drafted_tokens=30, accepted_tokens=9, source="reply")
PAGE = SpecCounters(
    drafts=10, drafted_tokens=30, accepted_tokens=9, accepted_per_position=(6, 3), source="page"
)


def test_a_page_that_agrees_fills_in_drafts_and_positions():
    both = complete(REPLY, PAGE)
    assert both == SpecCounters(90, 10, 30, 9, (6, 3), "reply, page")
    assert both.draft_share == 10 / 90


def test_steps_that_a_page_counted_are_better_than_those_that_follow_from_tokens():
    both = complete(REPLY, replace(PAGE, steps=92))
    assert both is not None and both.steps == 92


def test_a_page_with_foreign_traffic_is_left_out():
    foreign = SpecCounters(steps=400, drafts=50, drafted_tokens=150, accepted_tokens=20, source="page")
    assert complete(REPLY, foreign) == REPLY


@pytest.mark.parametrize(("tokens", "steps"), [(100, 90), (15, 10), (11, 10)])
def test_where_only_the_page_counts_steps_follow_from_the_tokens(tokens, steps):
    counted = complete(None, PAGE, output_tokens=tokens)
    assert counted is not None
    assert (counted.steps, counted.emitted_tokens) == (steps, tokens - 1)


@pytest.mark.parametrize("page", [PAGE, replace(PAGE, drafts=2, steps=10)])
def test_a_page_with_more_steps_than_the_reply_has_tokens_is_of_others_too(page):
    assert complete(None, page, output_tokens=10) is None
    assert complete(REPLY, page, output_tokens=10) == REPLY
    assert complete(None, page, output_tokens=11) is not None


def test_each_request_has_a_first_token_that_no_step_gave():
    counted = complete(None, PAGE, output_tokens=100, requests=4)
    assert counted is not None and (counted.steps, counted.emitted_tokens) == (100 - 4 - 9, 96)


def test_what_only_one_source_counted_is_kept():
    assert complete(None, PAGE) == PAGE
    assert complete(None, replace(PAGE, steps=7), 100) == replace(PAGE, steps=7)
    assert complete(REPLY, None) == REPLY
    assert complete(None, None) is None


def test_no_tokens_are_no_less_than_none():
    none = SpecCounters(drafts=0, drafted_tokens=0, accepted_tokens=0)
    counted = complete(None, none, output_tokens=0)
    assert counted is not None and (counted.steps, counted.emitted_tokens) == (0, 0)


def test_a_total_of_nothing_is_absent():
    assert total([]) is None
    assert total([REPLY, REPLY]) == REPLY + REPLY


def test_a_total_is_of_the_parts_that_there_are():
    assert total([None, REPLY, None]) == REPLY
    assert total([None, Load(requests=1), Load(requests=2)]) == Load(requests=3)
    assert total([None]) is None
