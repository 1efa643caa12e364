from __future__ import annotations

import pytest

from breakeven.client import sse
from breakeven.client.sse import NamedEvent, SseParser
from breakeven.errors import ProtocolError


def parse(*reads: bytes, close: bool = False) -> list[object]:
    parser = SseParser()
    events: list[object] = [event for read in reads for event in parser.feed(read)]
    return events + (list(parser.close()) if close else [])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_three_line_ends(end: bytes) -> None:
    assert parse(b"data: a" + end * 2 + b"data:b" + end * 2) == [b"a", b"b"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_split_gives_the_same_events(end: bytes) -> None:
    text = end.join(
        [b": hi", b"data: \xc3\xa4", b"data: two", b"", b"event: error", b"id: 7", b"data: x", b"", b""]
    )
    expected = [b"\xc3\xa4\ntwo", NamedEvent(b"error", b"x")]
    assert parse(text) == expected
    assert parse(*(bytes([byte]) for byte in text)) == expected
    for cut in range(len(text)):
        assert parse(text[:cut], text[cut:]) == expected


def test_a_byte_order_mark_is_dropped_only_at_the_start() -> None:
    assert parse(b"\xef\xbb", b"\xbfdata: a\n\n") == [b"a"]
    assert parse(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [b"a"]


def test_one_space_is_dropped_and_no_more() -> None:
    assert parse(b"data:  a\n\n", b"data:a\n\n", b"data\n\n", b"data:\ndata:\n\n") == [
        b" a",
        b"a",
        b"",
        b"\n",
    ]


def test_a_read_of_several_events_is_cut_where_an_event_ends() -> None:
    assert parse(b"data: a\n\ndata: b\n\ndata: c\n\n") == [b"a", b"b", b"c"]
    assert parse(b"data: a\n\n\ndata: b\n\n") == [b"a", b"b"]
    assert parse(b"data: a\n\n: ping\n\ndata: b\n\n") == [b"a", b"b"]
    assert parse(b"data: a\ndata: b\n\ndata: c\n\n\n\n") == [b"a\nb", b"c"]


def test_comments_and_unknown_fields_make_no_event() -> None:
    assert parse(b": ping\n\n", b"retry: 5\n\n", b"event: error\n\n", b"data: a\n\n") == [b"a"]


def test_an_event_name_holds_for_one_event() -> None:
    assert parse(b"event: error\ndata: a\n\ndata: b\n\n") == [NamedEvent(b"error", b"a"), b"b"]


def test_the_end_completes_an_event_that_lacks_its_blank_line() -> None:
    assert parse(b"data: [DONE]", close=True) == [b"[DONE]"]
    assert parse(b"data: [DONE]\n", close=True) == [b"[DONE]"]
    assert parse(b"data: a\n\n", close=True) == [b"a"]
    assert parse(b"", close=True) == []


def test_a_line_that_is_no_field_is_remembered() -> None:
    parser = SseParser()
    parser.feed(b'data: a\n\n{"error": "out of memory"}\n')
    assert parser.stray == b'{"error": "out of memory"}'


def test_an_endless_line_and_an_endless_event_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    with pytest.raises(ProtocolError, match="one line"):
        parse(*[b"x" * 100] * 20)
    with pytest.raises(ProtocolError, match="one event"):
        parse(*[b"data: " + b"x" * 90 + b"\n"] * 20)


def test_a_long_line_in_many_reads_is_joined_once() -> None:
    assert parse(b"data: ", *[b"x" * 1000] * 5000, b"\n\n") == [b"x" * 5_000_000]
