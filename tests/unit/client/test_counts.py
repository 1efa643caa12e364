from __future__ import annotations

from breakeven.client.counts import tokens_per_event
from breakeven.trace.records import Kind

C, E, S = Kind.CONTENT, Kind.END, Kind.SILENT


def test_without_ids_or_usage_nothing_is_known() -> None:
    assert tokens_per_event([C, C, E], [None] * 3, [None] * 3) == [None] * 3


def test_token_ids_count_first() -> None:
    assert tokens_per_event([C, S, C, E], [3, 1, 2, 1], [9, 9, 9, 9]) == [3, 1, 2, 1]


def test_a_running_total_counts_by_its_rise() -> None:
    assert tokens_per_event([C, C, C, E], [None] * 4, [1, 3, 8, 9]) == [1, 2, 5, 1]
    assert tokens_per_event([C, E], [None] * 2, [4, 4]) == [4, 0]


def test_a_total_that_comes_only_at_the_end_says_nothing_of_chunks() -> None:
    assert tokens_per_event([C, C, C], [None] * 3, [None, None, 128]) == [None] * 3
    assert tokens_per_event([C, C, E], [None] * 3, [None, None, 128]) == [None] * 3
    assert tokens_per_event([S], [None], [128]) == [None]


def test_a_total_that_stands_still_or_falls_is_unknown_not_zero() -> None:
    assert tokens_per_event([C, C, C], [None] * 3, [2, 2, 1]) == [2, None, None]


def test_hidden_tokens_are_seen_by_the_rise() -> None:
    assert tokens_per_event([S, S, C], [None] * 3, [10, 20, 21]) == [10, 10, 1]
    assert tokens_per_event([S, S], [None] * 2, [10, 20]) == [10, 10]
