from breakeven.acceptance.combine import complete, total
from breakeven.acceptance.counters import SpecCounters

REPLY = SpecCounters(steps=90, drafted_tokens=30, accepted_tokens=9, source="reply")
PAGE = SpecCounters(
    drafts=10, drafted_tokens=30, accepted_tokens=9, accepted_per_position=(6, 3), source="page"
)


def test_a_page_that_agrees_fills_in_drafts_and_positions():
    both = complete(REPLY, PAGE)
    assert both == SpecCounters(90, 10, 30, 9, (6, 3), "reply, page")
    assert both.draft_share == 10 / 90


def test_a_page_with_foreign_traffic_is_left_out():
    foreign = SpecCounters(drafts=50, drafted_tokens=150, accepted_tokens=20, source="page")
    assert complete(REPLY, foreign) == REPLY


def test_where_only_the_page_counts_steps_follow_from_the_tokens():
    counted = complete(None, PAGE, output_tokens=100)
    assert counted is not None
    assert counted.steps == 100 - 1 - 9
    assert complete(None, PAGE) == PAGE
    assert complete(REPLY, None) == REPLY
    assert complete(None, None) is None


def test_a_total_of_nothing_is_absent():
    assert total([]) is None
    assert total([REPLY, REPLY]) == REPLY + REPLY
