"""The SSE parser against its twin, and the whole reply path against anything at all."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzz import Fuzzer, Reply
from breakeven.client.sse import NamedEvent, SseParser
from tests.oracle.sse_twin import parse_all

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.sse"))

LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data", b"data:", b"data: ", b"event: error", b"event:", b": c", b":", b"id: 1",
     b"junk", b"data: \xc3\xa4", b"\xef\xbb\xbfdata: x", b"\xef\xbb\xbf", b"", b" data: y", b"data : z",
     b"retry: 1"]
)  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
TEXTS = st.lists(st.tuples(LINES, ENDS), max_size=14).map(lambda parts: b"".join(a + b for a, b in parts))
NOISE = st.lists(st.sampled_from([bytes([b]) for b in b"data: \r\n\xef\xbb\xbf:e"]), max_size=40).map(
    b"".join
)


def parse_in_reads(text: bytes, cuts: list[int]) -> list[tuple[bytes, bytes]]:
    parser = SseParser()
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    items = [item for a, b in itertools.pairwise(edges) for item in parser.feed(text[a:b])]
    items += parser.close()
    return [(item.name, item.data) if isinstance(item, NamedEvent) else (b"", item) for item in items]


@settings(max_examples=1500, deadline=None)
@given(TEXTS | NOISE | st.binary(max_size=40), st.lists(st.integers(0, 1000), max_size=6))
def test_any_text_in_any_reads_gives_the_twins_events(text: bytes, cuts: list[int]) -> None:
    assert parse_in_reads(text, cuts) == parse_all(text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GOLDEN), st.lists(st.integers(0, 10**6), max_size=30))
def test_captured_streams_in_any_reads_give_the_twins_events(path: Path, cuts: list[int]) -> None:
    text = path.read_bytes()[:6000]
    assert parse_in_reads(text, cuts) == parse_all(text)


@settings(max_examples=600, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 1000), max_size=6), st.booleans())
async def test_any_bytes_from_a_server_give_a_trace(body: bytes, cuts: list[int], headed: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" if headed else b""
    text = head + body
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    reply = Reply()
    for a, b in itertools.pairwise(edges):
        reply.read(text[a:b])
    assert reply.end() is None


async def test_a_thousand_mutations_of_captured_streams_give_traces() -> None:
    fuzzer = Fuzzer(seed=7)
    assert [fuzzer.run_one(number) for number in range(1000)] == [None] * 1000
