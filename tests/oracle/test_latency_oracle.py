"""summarize against a twin that keeps everything and computes each figure from its definition."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.latency import EnoughTokens, request_latency, summarize
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace

texts = st.sampled_from([Kind.CONTENT, Kind.REASONING, Kind.TOOL, Kind.SILENT])
gaps_ns = st.integers(0, 50_000_000)


@st.composite
def replies(draw):
    """(trace, true tokens of each chunk); the trace may show the sizes, or their sum, or neither."""
    sizes = draw(st.lists(st.integers(1, 4), max_size=12))
    known, ended = draw(st.booleans()), draw(st.booleans())
    events, now, read = [], 1_000, 0
    for size in sizes:
        gap = draw(gaps_ns)
        now, read = now + gap, read + bool(gap)
        kind = draw(texts) if known else draw(st.sampled_from([Kind.CONTENT, Kind.TOOL]))
        events.append(Event(now, read, kind, size if known or kind is Kind.SILENT else None))
    total = sum(sizes)
    if ended and sizes:
        now, read = now + 1_000_000, read + 1
        events.append(Event(now, read, Kind.END, None))
    cut = draw(st.booleans())
    trace = RequestTrace(
        id="r",
        prompt_id="p",
        category="c",
        repeat=0,
        block=0,
        max_tokens=64,
        scheduled_ns=None,
        connect_ns=None,
        sent_ns=0,
        end_ns=now,
        events=tuple(events),
        text="word " * total,
        reasoning="",
        tool_calls="",
        finish_reason="length" if cut else "stop",
        usage={"completion_tokens": total, "prompt_tokens": 5} if draw(st.booleans()) or not sizes else None,
        error=RequestError("StreamError", "x") if draw(st.integers(0, 9)) == 0 else None,
    )
    return trace, sizes


traces = replies().map(lambda pair: pair[0])


def percentile(values, q):
    """Hyndman and Fan's type 7, in exact arithmetic."""
    ordered = sorted(map(Fraction, values))
    place = Fraction(q, 100) * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def check_distribution(found, values):
    if not values:
        assert found is None
        return
    assert found.n == len(values)
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.p50 == pytest.approx(percentile(values, 50))
    assert found.p90 == pytest.approx(percentile(values, 90))
    assert found.p99 is None if len(values) < 100 else found.p99 == pytest.approx(percentile(values, 99))


def median_by_redistribution(replies):
    """Efron's redistribution to the right: a censored reply's weight goes in equal parts to all longer ones.

    At a tie the endings come before the cuts, as in the product-limit estimate.
    """
    if not replies:
        return None
    ordered = sorted(replies)
    weights = [Fraction(1, len(ordered))] * len(ordered)
    gone = Fraction(0)
    for index, (length, cut) in enumerate(ordered):
        if not cut:
            gone += weights[index]
            if gone >= Fraction(1, 2) - Fraction(1, 10**12):
                return EnoughTokens(length, more_than=False)
        elif rest := len(ordered) - index - 1:
            for later in range(index + 1, len(ordered)):
                weights[later] += weights[index] / rest
    return EnoughTokens(ordered[-1][0], more_than=True)


@settings(max_examples=150, deadline=None)
@given(st.lists(traces, max_size=8), st.integers(1, 20))
def test_summary_equals_its_definition(some, copies):
    every = some * copies
    summary = summarize(iter(every), 3.0)
    fine = [(trace, request_latency(trace)) for trace in every if trace.error is None]
    assert (summary.requests, summary.errors) == (len(every), len(every) - len(fine))
    for name in ("ttft", "ttft_content", "tpot", "e2e"):
        values = [getattr(latency, f"{name}_s") for _, latency in fine]
        check_distribution(getattr(summary, name), [value for value in values if value is not None])
    timed = [latency for _, latency in fine if latency.tpot_s is not None]
    if timed:
        tokens, seconds = sum(x.decode_tokens for x in timed), sum(x.decode_s for x in timed)
        assert summary.decode_tokens_per_s == pytest.approx(tokens / seconds)
    known = [latency.output_tokens for _, latency in fine if latency.output_tokens is not None]
    assert summary.tokens.output == (sum(known) if known else None)
    lengths = [(x.output_tokens, trace.finish_reason == "length") for trace, x in fine if x.output_tokens]
    assert summary.max_tokens_enough_for_median == median_by_redistribution(lengths)


@settings(max_examples=400, deadline=None)
@given(replies())
def test_bounds_hold_the_truth(reply):
    """True TPOT lies within the bounds whatever the chunks held, and is hit where n_first is known.

    Left out: a closing chunk beside one token more than chunks, which reads as an end-of-sequence token.
    """
    trace, sizes = reply
    latency = request_latency(trace)
    if latency.tpot_s is None:
        assert latency.absent["tpot_s"]
        return
    assert latency.decode_tokens + latency.n_first == latency.output_tokens
    carried = trace.events[: len(sizes)]
    if latency.chunks != len(carried):
        return
    n_first = sum(n for n, event in zip(sizes, carried, strict=True) if event.read_id == carried[0].read_id)
    truth = (carried[-1].read_ns - carried[0].read_ns) * 1e-9 / (sum(sizes) - n_first)
    assert truth <= latency.tpot_high_s * (1 + 1e-12)
    if latency.tokens_source != "chunks":
        assert truth >= latency.tpot_low_s * (1 - 1e-12)
    if latency.n_first_source in ("usage", "token_ids"):
        assert latency.tpot_s == pytest.approx(truth)
