"""What is made of a reply's bytes, without a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.acceptance.per_request import CARRIERS
from breakeven.client.assemble import Asked, assemble
from breakeven.client.exchange import Exchange
from breakeven.client.stream import ReplyStream
from breakeven.errors import BreakevenError
from breakeven.trace.records import Event, Kind, RequestTrace
from tests.unit.client.replies import ASKED, HELLO, chunk, sse

GOLDEN = Path(__file__).parents[2] / "golden"
C, R, T, E, S = Kind.CONTENT, Kind.REASONING, Kind.TOOL, Kind.END, Kind.SILENT


def read(*reads: bytes, status: int = 200, content_type: str = "text/event-stream") -> RequestTrace:
    """The trace of a reply whose body came in these reads, at 1 ms, 2 ms, …"""
    stream = ReplyStream("http://h/v1/chat/completions")
    exchange = Exchange(stream)
    exchange.sent_ns = 100
    error: BreakevenError | None = None
    try:
        stream.head(status, {"content-type": content_type})
        for number, data in enumerate(reads):
            exchange.read_ns, exchange.reads = (number + 1) * 1_000_000, number + 1
            stream.feed(data, exchange.read_ns, number)
        stream.close(exchange.read_ns or 0, exchange.reads)
    except BreakevenError as failure:
        error = failure
    return assemble(Asked(ASKED, 16, 0, None, 50), exchange, stream.reader, error)


def kinds(trace: RequestTrace) -> list[Kind]:
    return [event.kind for event in trace.events]


def message(trace: RequestTrace) -> str:
    assert trace.error is not None, "no error"
    return f"{trace.error.kind}: {trace.error.message}"


def test_a_plain_reply() -> None:
    trace = read(HELLO)
    assert trace.error is None
    assert (trace.text, trace.finish_reason, trace.warnings) == ("Hello you", "stop", ())
    assert trace.events == (
        Event(1_000_000, 0, C, None),
        Event(1_000_000, 0, C, None),
        Event(1_000_000, 0, E, None),
    )
    assert (trace.id, trace.prompt_id, trace.category, trace.repeat, trace.block) == (
        "p1#2",
        "p1",
        "coding",
        2,
        1,
    )
    assert (trace.sent_ns, trace.end_ns) == (100, 1_000_000)


def test_each_read_has_its_own_id_and_time() -> None:
    first, second = HELLO[:200], HELLO[200:]
    assert {(event.read_ns, event.read_id) for event in read(first, second).events} == {
        (1_000_000, 0),
        (2_000_000, 1),
    }


def test_role_only_and_empty_chunks_are_no_events() -> None:
    roles = chunk({"role": "assistant", "content": ""}), chunk({"role": "assistant", "content": None})
    body = sse(*roles, chunk({}), chunk({"content": "a"}, "length"))
    assert kinds(read(body)) == [C]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_case_3_reasoning_beside_null_content(key: str) -> None:
    trace = read(sse(chunk({key: "hm", "content": None}), chunk({"content": "so"}), chunk({}, "stop")))
    assert kinds(trace) == [R, C, E]
    assert (trace.reasoning, trace.text) == ("hm", "so")


def test_reasoning_sent_under_both_names_counts_once() -> None:
    trace = read(sse(chunk({"reasoning": "hm", "reasoning_content": "hm"}), chunk({"content": "a"}, "stop")))
    assert (trace.reasoning, kinds(trace)) == ("hm", [R, C])


def test_a_chunk_with_reasoning_and_content_keeps_both_texts() -> None:
    trace = read(sse(chunk({"reasoning": "hm", "content": "a"}, "stop")))
    assert (trace.reasoning, trace.text, kinds(trace)) == ("hm", "a", [C])


def test_inline_reasoning_is_taken_out() -> None:
    trace = read(
        sse(*(chunk({"content": text}) for text in ("<thi", "nk>hm", "</think>", "so")), chunk({}, "stop"))
    )
    assert (trace.reasoning, trace.text, kinds(trace)) == ("hm", "so", [R, R, R, C, E])
    assert trace.warnings == ()
    lone = read(sse(*(chunk({"content": text}) for text in ("hm", "</think>", "so")), chunk({}, "stop")))
    assert (lone.reasoning, lone.text, kinds(lone)) == ("hm", "so", [R, R, C, E])
    assert "template" in lone.warnings[0]


def test_tags_are_text_where_the_server_splits_reasoning_itself() -> None:
    trace = read(sse(chunk({"reasoning": "hm"}), chunk({"content": "write </think>"}), chunk({}, "stop")))
    assert (trace.reasoning, trace.text) == ("hm", "write </think>")


def test_tool_calls_and_the_legacy_function_call_are_tokens() -> None:
    calls = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "find", "arguments": ""}}]
    more = [{"index": 0, "function": {"arguments": '{"q": 1}'}}]
    legacy = {"function_call": {"name": "f", "arguments": {"a": 1}}}
    deltas = ({"tool_calls": calls}, {"tool_calls": more}, legacy)
    trace = read(sse(*map(chunk, deltas), chunk({}, "tool_calls")))
    assert kinds(trace) == [T, T, T, E]
    assert trace.tool_calls == 'find{"q": 1}f{"a":1}'


def test_plain_completions() -> None:
    texts = [{"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in ("a", "", "b")]
    trace = read(sse(*texts, {"choices": [{"index": 0, "text": "", "finish_reason": "length"}]}))
    assert (trace.text, kinds(trace), trace.finish_reason) == ("ab", [C, C], "length")


def test_content_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so"},
        "!",
        5,
    ]
    trace = read(sse(chunk({"content": parts}, "stop")))
    assert (trace.text, trace.reasoning) == ("so!", "hm")


def test_a_finish_chunk_without_text_may_hold_the_end_token_only_after_an_own_end() -> None:
    assert kinds(read(sse(chunk({"content": "a"}), chunk({"content": ""}, "stop")))) == [C, E]
    assert kinds(read(sse(chunk({"content": "a"}), chunk({}, "length")))) == [C]


def test_case_7_usage_with_no_choices_is_read() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    trace = read(
        sse(chunk({"content": "a"}), chunk({"content": "b"}, "stop"), {"choices": [], "usage": usage})
    )
    assert (trace.error, trace.usage) == (None, usage)
    inside = read(sse(chunk({"content": "a"}, "stop", choice={"usage": usage})))
    assert inside.usage == usage


def test_token_ids_count_and_are_kept() -> None:
    body = sse(
        {**chunk({"role": "assistant"}), "prompt_token_ids": [1, 2, 3]},
        chunk({"content": "ab"}, choice={"token_ids": [4, 5]}),
        chunk({}, choice={"token_ids": [6]}),
        chunk({"content": ""}, "stop", choice={"token_ids": [7]}),
    )
    trace = read(body)
    assert [(event.kind, event.n_tokens) for event in trace.events] == [(C, 2), (S, 1), (E, 1)]
    assert (trace.prompt_token_ids, trace.output_token_ids) == ((1, 2, 3), (4, 5, 6, 7))


def test_token_ids_are_kept_whole_or_not_at_all() -> None:
    trace = read(sse(chunk({"content": "a"}, choice={"token_ids": [4]}), chunk({"content": "b"}, "stop")))
    assert trace.output_token_ids is None
    assert [event.n_tokens for event in trace.events] == [1, None]


def test_further_replies_are_left_out_with_a_warning() -> None:
    other = {"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"}
    mixed = {"choices": [other, {"index": 0, "delta": {"content": "A"}, "finish_reason": None}]}
    trace = read(sse(mixed, {"choices": [other]}, chunk({}, "stop")))
    assert (trace.text, kinds(trace)) == ("A", [C, E])
    assert "n > 1" in trace.warnings[0]


@pytest.mark.parametrize(
    ("file", "events", "usage_tokens", "finish"),
    [
        ("llamacpp-chat-reasoning.sse", [R] * 6 + [C] * 4 + [E], None, "stop"),
        ("vllm-chat-token-ids.sse", [C] * 6, 6, "length"),
        ("vllm-chat-running-usage.sse", [R] * 13, 14, "length"),
    ],
)
def test_captured_streams(file: str, events: list[Kind], usage_tokens: int | None, finish: str) -> None:
    trace = read((GOLDEN / file).read_bytes())
    assert trace.error is None
    assert kinds(trace) == events
    assert (trace.usage or {}).get("completion_tokens") == usage_tokens
    assert trace.finish_reason == finish


def test_a_captured_vllm_reply_with_bundles_silent_tokens_and_metrics() -> None:
    trace = read((GOLDEN / "vllm-chat-reasoning.sse").read_bytes())
    assert [event.n_tokens for event in trace.events] == [1] * 15 + [6, 6, 5]
    assert trace.events[10].kind is S
    assert trace.output_token_ids is not None and len(trace.output_token_ids) == 32
    assert trace.prompt_token_ids is not None and len(trace.prompt_token_ids) == 20
    assert trace.speculation is not None and trace.speculation.accepted_tokens == 15
    assert trace.server_timings is not None and "metrics" in trace.server_timings


def test_counts_of_a_reply_of_sglang() -> None:
    details = {"spec_verify_ct": 3, "spec_num_correct_drafts": 5, "spec_num_proposed_drafts": 15}
    last = {"choices": [], "usage": {"completion_tokens": 9}, "sglext": {"spec_tokens_details": details}}
    trace = read(sse(chunk({"content": "Hi"}, "stop"), last))
    assert trace.speculation is not None
    assert (trace.speculation.steps, trace.speculation.accepted_tokens) == (3, 5)
    assert trace.server_timings == {"sglext": last["sglext"]}


def test_a_captured_running_usage_counts_the_bundle_of_two() -> None:
    trace = read((GOLDEN / "vllm-chat-running-usage.sse").read_bytes())
    assert [event.n_tokens for event in trace.events] == [1] * 10 + [2, 1, 1]


def test_a_captured_llamacpp_reply_with_speculation() -> None:
    trace = read((GOLDEN / "llamacpp-chat-whole.sse").read_bytes())
    assert trace.speculation is not None
    assert (trace.speculation.drafted_tokens, trace.speculation.accepted_tokens) == (192, 65)
    assert (len(trace.events), trace.events[-1].kind) == (136, E)
    assert (trace.usage or {})["completion_tokens"] == 136


@pytest.mark.parametrize(
    "event",
    [
        sse({"error": {"message": "CUDA out of memory", "code": 500}}),
        sse({"error": "CUDA out of memory"}),
        sse({"object": "error", "message": "CUDA out of memory"}),
        b'event: error\ndata: {"message": "CUDA out of memory"}\n\n',
        b"event: error\ndata: CUDA out of memory\n\n",
        b'{"error": {"message": "CUDA out of memory"}}\n\n',
    ],
)
def test_errors_inside_the_stream(event: bytes) -> None:
    trace = read(sse(chunk({"content": "Hel"}), done=False), event)
    assert message(trace).startswith("StreamError") and "CUDA out of memory" in message(trace)
    assert (trace.text, kinds(trace)) == ("Hel", [C])


def test_an_error_nested_beyond_all_measure_is_one() -> None:
    for deep in (b'{"error":' * 900 + b'"x"' + b"}" * 900, b'{"error":' + b"[" * 900 + b"]" * 900 + b"}"):
        trace = read(sse(deep))
        assert trace.error is not None and trace.error.kind == "StreamError"


@pytest.mark.parametrize("reason", ["error", "abort", "cancelled"])
def test_a_failed_finish_is_an_error_that_keeps_its_text(reason: str) -> None:
    trace = read(sse(chunk({"content": "boom"}, reason)))
    assert reason in message(trace) and "boom" in message(trace)
    assert trace.text == "boom"


def test_a_stream_without_any_end_is_an_error() -> None:
    trace = read(sse(chunk({"content": "a"}), chunk({"content": "b"}), done=False))
    assert "neither finish_reason nor [DONE]" in message(trace)
    assert trace.text == "ab"
    assert read(sse(chunk({"content": "a"}, "stop"), done=False)).error is None
    assert read(sse(chunk({"content": "a"}), chunk({"content": "b"}))).error is None


def test_an_event_that_the_end_cut_short_is_no_protocol_error() -> None:
    assert "StreamError" in message(read(HELLO[:-80]))


@pytest.mark.parametrize(
    ("text", "finish", "usage", "is_error"),
    [
        ('{"error": {"message": "no memory"}}', "stop", 1, True),
        ('{"error": {"message": "no memory"}}', None, None, True),
        ('{"error": {"message": "no memory"}}', "stop", 12, False),
        ("Internal server error: no memory", "stop", 1, True),
        ("Error", "stop", 1, False),
        ("Errors are common in code", "stop", 5, False),
        ("Fine, no memory of it", "stop", 1, False),
    ],
)
def test_case_14_an_error_dressed_as_a_reply(
    text: str, finish: str | None, usage: int | None, is_error: bool
) -> None:
    tail = [] if usage is None else [{"choices": [], "usage": {"completion_tokens": usage}}]
    trace = read(sse(chunk({"content": text}, finish), *tail))
    assert (trace.error is not None) == is_error
    assert trace.text == text


def test_bodies_that_are_no_stream() -> None:
    whole = (GOLDEN / "vllm-chat-nonstream.json").read_bytes()
    assert "ignored `stream: true`" in message(read(whole, content_type="application/json"))
    assert "ignored `stream: true`" in message(read(b"data: " + whole + b"\n\n"))
    page = b"<!DOCTYPE html><html><head><title>Log in</title></head></html>"
    assert message(read(page, content_type="text/html")).startswith(
        "ProtocolError: http://h/v1/chat/completions"
    )
    assert "Log in" in message(read(page))
    assert "no memory" in message(read(b'{"error": {"message": "no memory"}}'))
    assert message(read(b"[1, 2]")).startswith("ProtocolError")
    assert message(read(b"")).startswith("ProtocolError")
    assert message(read(b"data: nonsense\n\n")).startswith("ProtocolError")


def test_a_stream_with_the_wrong_content_type_is_a_stream() -> None:
    assert read(HELLO, content_type="application/json").text == "Hello you"


def test_text_that_is_not_utf8_or_holds_half_a_character_is_repaired() -> None:
    trace = read(
        b'data: {"choices":[{"index":0,"delta":{"content":"\xff"},"finish_reason":null}]}\n\n', HELLO
    )
    assert trace.text == "\ufffdHello you" and "UTF-8" in trace.warnings[0]
    halves = [
        b'{"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\ude00"}}]}',
    ]
    trace = read(sse(*halves, chunk({}, "stop")))
    assert trace.text == "😀" and len(trace.events) == 3
    assert read(sse(halves[0], chunk({"content": "x"}, "stop"))).text == "\ufffdx"
    whole = sse(chunk({"content": "Grüße 😀"}, "stop"))
    assert all(read(whole[:cut], whole[cut:]).text == "Grüße 😀" for cut in range(len(whole)))


def test_nan_is_read() -> None:
    trace = read(
        sse(b'{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":NaN,"finish_reason":"stop"}]}')
    )
    assert trace.text == "a"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
DELTA_KEYS = ("content", "reasoning", "reasoning_content", "tool_calls", "function_call", "role", "refusal")
CHOICE_KEYS = ("index", "delta", "text", "message", "finish_reason", "token_ids", "prompt_token_ids", "usage")
CHUNK_KEYS = ("choices", "usage", "error", "object", *CARRIERS, "prompt_token_ids")


def objects(keys: tuple[str, ...], **known: Any) -> st.SearchStrategy[Any]:
    values = {key: known.get(key, st.nothing()) | JSON for key in keys}
    return st.fixed_dictionaries({}, optional=values)


FUNCTION = st.fixed_dictionaries({}, optional={"name": JSON, "arguments": JSON})
CALLS = st.lists(st.fixed_dictionaries({}, optional={"function": FUNCTION | JSON}) | JSON, max_size=2)
USAGE = st.fixed_dictionaries({}, optional={"completion_tokens": JSON, "prompt_tokens": JSON})
DELTAS = objects(DELTA_KEYS, tool_calls=CALLS, function_call=FUNCTION)
CHOICES = st.lists(
    objects(CHOICE_KEYS, delta=DELTAS, usage=USAGE, token_ids=st.lists(JSON, max_size=3)) | JSON, max_size=2
)
SPEC = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("speculative_decoding", "draft_n", "draft_n_accepted", "draft_rounds", "spec_verify_ct"), JSON
    ),
)
CHUNKS = objects(CHUNK_KEYS, choices=CHOICES, usage=USAGE, **dict.fromkeys(CARRIERS, SPEC)) | JSON


@settings(max_examples=400, deadline=None)
@given(st.lists(CHUNKS, max_size=4))
def test_any_type_in_any_place_gives_a_trace(chunks: list[Any]) -> None:
    trace = read(
        sse(
            *(
                orjson.dumps(c, option=orjson.OPT_NON_STR_KEYS, default=str) if not _too_big(c) else b"{}"
                for c in chunks
            )
        )
    )
    assert all(event.n_tokens is None or 0 <= event.n_tokens < 2**31 for event in trace.events)
    trace.text.encode(), trace.reasoning.encode(), trace.tool_calls.encode()


def _too_big(value: Any) -> bool:
    """orjson writes 64-bit integers only."""
    if isinstance(value, dict):
        return any(map(_too_big, value.values()))
    if isinstance(value, list):
        return any(map(_too_big, value))
    return isinstance(value, int) and abs(value) >= 2**63
