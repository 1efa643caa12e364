"""The definitions of latency, on streams whose true figures are known."""

from dataclasses import replace

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.latency import EnoughTokens, request_latency, summarize
from breakeven.latency.hidden import LATE_TTFT
from breakeven.latency.tokens import CHUNKS_COUNTED, CLAMPED_REASONING, UNTRUSTED_REASONING, UNTRUSTED_USAGE
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace

MS = 1_000_000
C, R, T, E, S = Kind.CONTENT, Kind.REASONING, Kind.TOOL, Kind.END, Kind.SILENT


def stream(*chunks, ttft_ms=50.0, step_ms=20.0):
    """Events from (kind, n_tokens), one read each, the first at ttft_ms and the others step_ms apart."""
    return tuple(
        Event(int((ttft_ms + index * step_ms) * MS), index, kind, n) for index, (kind, n) in enumerate(chunks)
    )


def reply(events, completion=None, thought=None, **changes):
    usage = None
    if completion is not None:
        usage = {"prompt_tokens": 9, "completion_tokens": completion}
        if thought is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    texts = {
        "text": "word " * sum(event.kind is C for event in events),
        "reasoning": "word " * sum(event.kind is R for event in events),
        "tool_calls": "word " * sum(event.kind is T for event in events),
    }
    fields = {
        "id": "p#0",
        "prompt_id": "p",
        "category": "c",
        "repeat": 0,
        "block": 0,
        "max_tokens": 256,
        "scheduled_ns": None,
        "connect_ns": None,
        "sent_ns": 0,
        "end_ns": max([event.read_ns for event in events], default=0) + MS,
        "events": tuple(events),
        "finish_reason": "stop",
        "usage": usage,
    }
    return RequestTrace(**{**fields, **texts, **changes})


def test_one_token_per_chunk_is_exact():
    latency = request_latency(reply(stream(*[(C, None)] * 128), completion=128))
    assert (latency.ttft_s, latency.tpot_s) == (pytest.approx(0.050), pytest.approx(0.020))
    assert latency.tpot_low_s == latency.tpot_high_s == latency.tpot_s
    assert (latency.n_first, latency.n_first_source, latency.tokens_source) == (1, "one_per_chunk", "usage")
    assert (latency.decode_tokens, latency.chunks) == (127, 128)
    assert latency.warnings == ()
    assert dict(latency.absent) == {}


def test_end_chunk_is_a_token_when_usage_counts_one_more():
    """llama.cpp counts the end-of-sequence token: 73 tokens, 72 chunks of text and a closing one."""
    events = stream(*[(C, None)] * 72, (E, None))
    latency = request_latency(reply(events, completion=73))
    assert (latency.n_first, latency.n_first_source, latency.chunks) == (1, "one_per_chunk", 73)
    assert latency.decode_s == pytest.approx(72 * 0.020)
    assert latency.tpot_s == pytest.approx(0.020)


def test_end_chunk_is_no_token_when_usage_does_not_count_it():
    latency = request_latency(reply(stream(*[(C, None)] * 72, (E, None)), completion=72))
    assert (latency.chunks, latency.decode_tokens) == (72, 71)
    assert latency.decode_s == pytest.approx(71 * 0.020)


def test_first_chunk_of_eight_of_128():
    """Sixteen chunks of eight, 160 ms apart: divided by 120, with the bounds stated."""
    latency = request_latency(
        reply(stream(*[(C, None)] * 16, step_ms=160), completion=128, text="word " * 128)
    )
    assert (latency.n_first, latency.n_first_source) == (8, "estimate")
    assert latency.tpot_s == pytest.approx(15 * 0.160 / 120)
    assert latency.tpot_low_s == pytest.approx(15 * 0.160 / 127)
    assert latency.tpot_high_s == pytest.approx(15 * 0.160 / 15)


def test_chunk_sizes_from_token_ids():
    """A prefill token, then bundles of six: dividing by N − 1 is right here, as n_first is known to be 1."""
    sizes = [1, 6, 6, 6, 6, 6, 1]
    trace = reply(
        stream(*[(R, n) for n in sizes]), 32, 31, output_token_ids=tuple(range(32)), finish_reason="length"
    )
    latency = request_latency(trace)
    assert (latency.n_first, latency.n_first_source) == (1, "token_ids")
    assert latency.tpot_s == pytest.approx(6 * 0.020 / 31)
    assert (latency.reasoning_tokens, latency.content_tokens) == (31, 0)
    assert latency.truncated_in_reasoning


def test_chunk_sizes_from_usage_per_chunk():
    latency = request_latency(reply(stream((C, 3), (C, 2), (E, 0)), completion=5))
    assert (latency.n_first, latency.n_first_source, latency.chunks) == (3, "usage", 2)
    assert latency.tpot_s == pytest.approx(0.020 / 2)


def test_chunks_of_one_read_arrive_together():
    events = [Event(50 * MS, 7, C, None), Event(50 * MS, 7, C, None), Event(90 * MS, 8, C, None)]
    latency = request_latency(reply(events, completion=3))
    assert (latency.n_first, latency.decode_tokens) == (2, 1)
    assert latency.tpot_s == pytest.approx(0.040)


def test_reasoning_then_content():
    """64 reasoning and 64 content tokens at 20 ms: TPOT is over both."""
    latency = request_latency(reply(stream(*[(R, None)] * 64, *[(C, None)] * 64), completion=128))
    assert latency.ttft_s == pytest.approx(0.050)
    assert latency.ttft_content_s == pytest.approx(0.050 + 64 * 0.020)
    assert latency.tpot_s == pytest.approx(0.020)
    assert (latency.reasoning_tokens, latency.content_tokens) == (64, 64)


def test_reasoning_only():
    trace = reply(stream(*[(R, None)] * 300), completion=300, finish_reason="length")
    latency = request_latency(trace)
    assert latency.ttft_s == pytest.approx(0.050)
    assert latency.ttft_content_s is None
    assert latency.absent["ttft_content_s"] == "no content token came"
    assert (latency.output_tokens, latency.reasoning_tokens, latency.content_tokens) == (300, 300, 0)
    assert latency.truncated_in_reasoning
    assert latency.tpot_s > 0


@pytest.mark.parametrize(
    ("chunks", "finish", "truncated"),
    [
        ([(R, None), (C, None)], "length", False),
        ([(R, None), (T, None)], "length", False),
        ([(R, None), (R, None)], "stop", False),
        ([(S, 1), (S, 1)], "length", True),
    ],
)
def test_truncated_in_reasoning(chunks, finish, truncated):
    latency = request_latency(reply(stream(*chunks), completion=2, finish_reason=finish))
    assert latency.truncated_in_reasoning is truncated


def test_reasoning_count_above_the_total_is_clamped():
    events = stream(*[(R, None)] * 2387, step_ms=10)
    latency = request_latency(reply(events, 23870, 23871, reasoning="word " * 23870, finish_reason="length"))
    assert (latency.reasoning_tokens, latency.content_tokens) == (23870, 0)
    assert CLAMPED_REASONING in latency.warnings


def test_reasoning_count_of_zero_beside_reasoning_chunks_is_not_used():
    latency = request_latency(reply(stream(*[(R, None)] * 5, *[(C, None)] * 5), 10, 0))
    assert (latency.reasoning_tokens, latency.content_tokens) == (5, 5)
    assert UNTRUSTED_REASONING in latency.warnings


def test_reasoning_share_is_unknown_where_chunks_bundle():
    latency = request_latency(reply(stream(*[(R, None)] * 5, *[(C, None)] * 5), completion=40))
    assert (latency.reasoning_tokens, latency.content_tokens) == (None, None)
    assert "reasoning_tokens" in latency.absent


def test_usage_wins_over_chunks():
    events = stream(*[(C, None)] * 10, step_ms=200)
    latency = request_latency(reply(events, completion=46, text="word " * 46))
    assert (latency.output_tokens, latency.tokens_source) == (46, "usage")


@pytest.mark.parametrize("completion", [0, 5])
def test_usage_below_the_stream_is_not_trusted(completion):
    latency = request_latency(reply(stream(*[(C, None)] * 10), completion=completion))
    assert (latency.output_tokens, latency.tokens_source) == (10, "chunks")
    assert any(UNTRUSTED_USAGE in warning and CHUNKS_COUNTED in warning for warning in latency.warnings)


def test_token_ids_stand_in_for_usage():
    latency = request_latency(reply(stream(*[(C, None)] * 10), output_token_ids=tuple(range(10))))
    assert (latency.output_tokens, latency.tokens_source) == (10, "token_ids")
    assert latency.warnings == ()


def test_chunks_are_the_named_last_resort():
    latency = request_latency(reply(stream(*[(C, None)] * 10, (E, None))))
    assert (latency.output_tokens, latency.tokens_source) == (10, "chunks")
    assert latency.warnings == (CHUNKS_COUNTED,)
    assert latency.tpot_low_s is None
    assert "any number more" in latency.absent["tpot_low_s"]


def test_a_chunk_cut_at_a_think_tag_does_not_discredit_usage():
    events = [
        Event(50 * MS, 0, R, None),
        Event(70 * MS, 1, R, None),
        Event(70 * MS, 1, C, None),
        Event(90 * MS, 2, C, None),
    ]
    latency = request_latency(reply(events, completion=3))
    assert (latency.output_tokens, latency.tokens_source) == (3, "usage")


HIDDEN = {
    "usage counts it": reply(stream(*[(C, None)] * 100), 1000, 900),
    "a summary was streamed": reply(
        stream(*[(R, None)] * 100, *[(C, None)] * 100), 1000, 900, reasoning="long " * 400
    ),
    "more tokens than bytes": reply(stream(*[(C, None)] * 100), 1000),
    "more reasoning than its bytes": reply(
        stream((R, None), *[(C, None)] * 10), 600, 500, text="word " * 400
    ),
    "tokens in no chunk": reply(stream(*[(C, 1)] * 100), 1000, text="word " * 1000),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_hidden_reasoning_is_named_and_no_speed_is_claimed(case):
    latency = request_latency(HIDDEN[case])
    assert latency.tpot_s is latency.decode_s is latency.decode_tokens is None
    assert latency.absent["tpot_s"].startswith("hidden reasoning")
    assert any("hidden reasoning" in warning for warning in latency.warnings)
    assert latency.ttft_s == pytest.approx(0.050)


WORDS = "word " * 120
VISIBLE = {
    "silent tokens are timed": reply(stream(*[(S, 1)] * 90, *[(C, 1)] * 10), 100, 90),
    "an empty thought": reply(stream(*[(C, None)] * 60), 63, 3),
    "bundles of both": reply(
        stream(*[(R, None)] * 30, *[(C, None)] * 30), 240, 120, reasoning=WORDS, text=WORDS
    ),
    "one byte per token": reply(stream(*[(C, None)] * 50), 50, text="1" * 50),
}


@pytest.mark.parametrize("case", VISIBLE)
def test_what_is_not_hidden_keeps_its_speed(case):
    assert request_latency(VISIBLE[case]).tpot_s > 0


def test_a_late_first_token_is_suspicious():
    late = reply(stream(*[(C, None)] * 50, ttft_ms=20_000), completion=50)
    assert LATE_TTFT in request_latency(late).warnings
    shown = reply(stream(*[(R, None)] * 50, ttft_ms=20_000), completion=50)
    assert request_latency(shown).warnings == ()
    early = reply(stream(*[(C, None)] * 50, ttft_ms=4_900, step_ms=1), completion=50)
    assert request_latency(early).warnings == ()


def test_all_tokens_in_one_read():
    events = [Event(50 * MS, 3, C, None)] * 5
    latency = request_latency(reply(events, completion=5))
    assert latency.tpot_s is None
    assert "one read" in latency.absent["tpot_s"]
    assert latency.ttft_s == pytest.approx(0.050)


def test_a_single_token():
    latency = request_latency(reply(stream((C, None)), completion=1))
    assert (latency.tpot_s, latency.output_tokens) == (None, 1)


def test_only_the_end_token():
    latency = request_latency(reply(stream((E, None)), completion=1))
    assert (latency.ttft_s, latency.ttft_content_s) == (pytest.approx(0.050), None)
    assert (latency.output_tokens, latency.chunks) == (1, 1)


@pytest.mark.parametrize(
    "usage", [None, {"completion_tokens": 0}, {"completion_tokens": "7"}, {"completion_tokens": True}]
)
def test_no_tokens_at_all(usage):
    latency = request_latency(reply((), usage=usage))
    assert latency.ttft_s is latency.ttft_content_s is latency.tpot_s is None
    assert latency.output_tokens == (0 if usage == {"completion_tokens": 0} else None)
    assert latency.absent["ttft_s"] == "no token came"
    assert latency.e2e_s == pytest.approx(0.001)


@pytest.mark.parametrize(
    "change",
    [
        {"sent_ns": 60 * MS},
        {"end_ns": 60 * MS},
        {"events": tuple(reversed(stream((C, None), (C, None), (C, None))))},
    ],
)
def test_stamps_that_run_backwards(change):
    latency = request_latency(replace(reply(stream(*[(C, None)] * 3), completion=3), **change))
    assert latency.ttft_s is latency.e2e_s is latency.tpot_s is None
    assert latency.absent["tpot_s"] == "the time stamps run backwards"
    assert latency.output_tokens == 3
    assert "the time stamps run backwards" in latency.warnings


def test_a_failed_request_keeps_its_counts_and_has_no_times():
    trace = reply(stream(*[(C, None)] * 3), error=RequestError("StreamError", "broke off"))
    latency = request_latency(trace)
    assert latency.ttft_s is latency.e2e_s is latency.tpot_s is None
    assert latency.absent["e2e_s"] == "the request failed: StreamError"
    assert latency.chunks == 3


def test_server_timings_are_never_used():
    trace = reply(stream(*[(C, None)] * 10), completion=10)
    lying = replace(trace, server_timings={"predicted_per_second": 0, "predicted_ms": 0})
    assert request_latency(lying) == request_latency(trace)
    assert summarize([lying], 1.0) == summarize([trace], 1.0)


def test_summary():
    plain = reply(stream(*[(C, None)] * 10), completion=10, speculation=SpecCounters(steps=4, source="x"))
    slow = reply(stream(*[(C, None)] * 10, step_ms=40), completion=10)
    broken = reply((), error=RequestError("TimedOut", "m"), warnings=("odd bytes",))
    summary = summarize([plain, slow, broken], wall_s=2.0)
    assert (summary.requests, summary.errors, summary.errors_by_kind) == (3, 1, {"TimedOut": 1})
    assert (summary.tokens.prompt, summary.tokens.output, summary.tokens.reasoning) == (18, 20, 0)
    assert summary.tpot.n == 2
    assert summary.tpot.p50 == pytest.approx(0.030)
    assert summary.tpot.p90 == pytest.approx(0.038)
    assert summary.tpot.p99 is None
    assert "needs 100" in summary.absent["tpot.p99"]
    assert summary.decode_tokens_per_s == pytest.approx(18 / (9 * 0.060))
    assert summary.output_tokens_per_s == pytest.approx(10)
    assert summary.tokens_per_chunk == 1
    assert (summary.speculation, summary.speculation_requests) == (SpecCounters(steps=4, source="x"), 1)
    assert summary.warnings == (
        "1 of 3 requests failed with TimedOut, the first of them because: m",
        "1 of 3 requests: odd bytes",
    )


def test_summary_of_a_hundred_has_p99():
    summary = summarize([reply(stream((C, None), (C, None)), completion=2)] * 100, None)
    assert summary.tpot.p99 == pytest.approx(0.020)
    assert summary.output_tokens_per_s is None
    assert "output_tokens_per_s" in summary.absent


def test_summary_of_nothing():
    summary = summarize([], 1.0)
    assert (summary.requests, summary.ttft, summary.tokens.output) == (0, None, None)
    assert summary.absent["ttft"] == "no request was made"
    failed = summarize([reply((), error=RequestError("HttpError", "m", 500))], 1.0)
    assert failed.absent["tpot"] == failed.absent["tokens.output"] == "no request succeeded"


def test_bundling_is_the_ratio_of_tokens_to_chunks():
    summary = summarize([reply(stream(*[(C, None)] * 20), completion=90, text="word " * 90)], 1.0)
    assert summary.tokens_per_chunk == 4.5


def test_warnings_are_counted_and_bounded():
    traces = [replace(reply(()), warnings=(f"w{i}", "common")) for i in range(200)]
    warnings = summarize(traces, 1.0).warnings
    assert warnings[0] == "200 of 200 requests: common"
    assert len(warnings) <= 52


@pytest.mark.parametrize(
    ("ended", "cut", "expected"),
    [
        ([100, 200, 300], [], EnoughTokens(200, False)),
        ([100, 200], [256], EnoughTokens(200, False)),
        ([100], [256, 256], EnoughTokens(256, True)),
        ([], [256], EnoughTokens(256, True)),
        ([100, 100, 500], [50, 50, 50], EnoughTokens(100, False)),
        ([], [], None),
    ],
)
def test_max_tokens_for_the_median(ended, cut, expected):
    traces = [reply((), completion=n) for n in ended]
    traces += [reply((), completion=n, finish_reason="length") for n in cut]
    assert summarize(traces, 1.0).max_tokens_enough_for_median == expected
