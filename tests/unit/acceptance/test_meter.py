from dataclasses import replace

import pytest

from breakeven.acceptance.load import Load
from breakeven.acceptance.meter import RESET, Asked, Meter
from breakeven.acceptance.page import Page
from tests.unit.acceptance.pages import page, vllm


def at(requests: int, tokens: int, drafts: int = 0) -> Page:
    spec = vllm(drafts=drafts, draft_tokens=3 * drafts, accepted_tokens=drafts)
    return page(spec, vllm(request_success=requests, generation_tokens=tokens))


TEN = Asked(10, 500, 60)


def test_a_window_holds_what_was_asked_in_it_and_nothing_of_before():
    meter = Meter().add(at(7, 300, drafts=40), at(17, 800, drafts=60), TEN)
    assert (meter.counters.drafts, meter.load.requests, meter.load.output_tokens) == (20, 10, 500)
    assert (meter.asked, meter.warnings) == (TEN, ())


def test_windows_add_up_and_what_lies_between_them_is_left_out():
    meter = Meter().add(at(0, 0), at(10, 500, 9), TEN).add(at(90, 9000, 99), at(100, 9500, 100), TEN)
    assert (meter.counters.drafts, meter.load.requests, meter.asked.requests) == (10, 20, 20)
    assert meter.warnings == ()


def test_other_traffic_is_told_with_its_size():
    meter = Meter().add(at(0, 0), at(14, 900), TEN)
    assert meter.warnings == (
        "other traffic shared the server: it finished 14 requests with 900 output tokens while 10 requests "
        "with 500 output tokens were asked of it; times, and what its page counted, are not of these alone",
    )


@pytest.mark.parametrize(
    ("requests", "tokens", "foreign"),
    [
        (11, 560, False),  # the last of the warm-up, counted late
        (12, 560, True),
        (11, 561, True),
        (10, 700, True),  # one that has not finished
        (8, 400, False),  # some of ours were never counted
    ],
)
def test_a_request_of_the_warm_up_that_is_counted_late_is_not_foreign(requests, tokens, foreign):
    meter = Meter().add(at(3, 100), at(3 + requests, 100 + tokens), TEN)
    assert bool(meter.warnings) is foreign


def test_a_warm_up_of_several_at_once_may_leave_several():
    before, after = at(3, 100), at(17, 840)
    assert Meter(late=4).add(before, after, TEN).warnings == ()
    assert Meter(late=3).add(before, after, TEN).warnings


def test_tokens_of_a_request_that_failed_are_not_known():
    asked = TEN + Asked(1, None)
    assert asked == Asked(11, None, 60)
    assert Meter().add(at(0, 0), at(11, 9999), asked).warnings == ()
    assert "while 11 requests were asked" in Meter().add(at(0, 0), at(14, 9999), asked).warnings[0]


def test_a_server_that_counts_no_requests_is_judged_by_tokens():
    def at(tokens: int) -> Page:
        return page(f"llamacpp:tokens_predicted_total {tokens}\n")

    assert Meter().add(at(5), at(565), TEN).warnings == ()
    (foreign,) = Meter().add(at(5), at(566), TEN).warnings
    assert "it finished 561 output tokens while 10 requests" in foreign


def test_a_reset_is_told_and_its_window_is_not_known():
    meter = Meter().add(at(0, 0), at(10, 500, 9), TEN).add(at(10, 500, 9), at(3, 100, 1), TEN)
    assert (meter.counters.drafts, meter.load.requests, meter.resets, meter.asked) == (9, 10, 1, TEN)
    assert meter.warnings == (RESET,)


@pytest.mark.parametrize("pages", [(None, None), (None, at(1, 1)), (at(1, 1), None)])
def test_a_page_that_was_not_read_leaves_nothing(pages):
    assert Meter().add(*pages, TEN) == Meter()


def test_on_top_of_earlier_windows():
    meter = Meter().add(at(0, 0), at(10, 500, 9), TEN)
    both = meter.on_top_of(meter.counters, meter.load)
    assert (both.counters.drafts, both.load.requests, both.asked) == (18, 20, TEN)
    assert meter.on_top_of(None, None) == meter
    assert replace(Meter(), load=Load(requests=1)).on_top_of(None, Load(requests=2)).load == Load(requests=3)


@pytest.mark.parametrize(
    ("work", "fits"),
    [
        (Load(requests=2, output_tokens=30), True),
        (Load(requests=1, output_tokens=30), True),
        (Load(), True),
        (Load(requests=3, output_tokens=30), False),
        (Load(requests=2, output_tokens=31), False),
        (Load(output_tokens=29), False),
    ],
)
def test_whether_the_server_did_nothing_else(work: Load, fits: bool):
    assert Asked(2, 30, 20).fits(work) is fits
    assert Asked(2, None).fits(replace(work, requests=None))
