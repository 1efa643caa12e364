"""A rolling window of pages, and servers that start anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.acceptance.page import Page
from breakeven.watch.window import Reading, Window
from tests.unit.watch.pages import page


def window(*readings: tuple[float, Page], span_s: float = 60.0) -> Window:
    made = Window(span_s)
    for at_s, one in readings:
        made.add(Reading(at_s, one))
    return made


def test_one_reading_counts_nothing():
    assert window((0.0, page(40))).counted() is None
    assert Window(60.0).counted() is None


def test_what_was_counted_between_the_first_and_the_last():
    found = window(
        (0.0, page(40, 100)), (5.0, page(80, 250, running=0)), (10.0, page(120, 400, running=6))
    ).counted()
    assert found is not None and found.counters is not None
    assert found.seconds == 10.0
    assert (found.counters.drafts, found.counters.drafted_tokens, found.counters.accepted_tokens) == (
        80,
        320,
        120,
    )
    assert found.counters.accepted_per_position == (60, 40, 20, 0)
    assert found.load.output_tokens == 300
    assert found.running == (2, 6)


def test_old_readings_go():
    made = window(*((5.0 * n, page(4 * n, 10 * n)) for n in range(40)), span_s=60.0)
    found = made.counted()
    assert found is not None and found.seconds == 60.0
    assert found.counters is not None and found.counters.drafts == 48


def test_after_a_long_silence_the_two_readings_around_it_are_the_window():
    found = window((0.0, page(40)), (5.0, page(44)), (500.0, page(80))).counted()
    assert found is not None and found.seconds == 495.0


def test_a_server_that_starts_anew_begins_a_new_window():
    made = window((0.0, page(400)), (5.0, page(440)), (10.0, page(4)))
    assert made.resets == 1 and made.counted() is None
    made.add(Reading(15.0, page(12)))
    found = made.counted()
    assert found is not None and found.counters is not None
    assert (found.seconds, found.counters.drafts) == (5.0, 8)


@pytest.mark.parametrize("after", [page(36, 100), page(40, 99), replace(page(40, 100), spec=None)])
def test_counts_that_fell_or_are_gone_are_of_a_server_that_started_anew(after: Page):
    assert window((0.0, page(40, 100)), (5.0, after)).resets == 1
