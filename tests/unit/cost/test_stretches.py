"""Step times out of traces: on a simulated server whose true step time at each concurrency is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest

from breakeven.cost.stretches import LAGS, full_spans, point, reply, stretches_s
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace

MS = 1_000_000
Step = Callable[[int], int]
"""Nanoseconds of a decode step by the replies in it."""


def trace(number: int, at_ns: list[int], n_tokens: int | None = 1, **changes: object) -> RequestTrace:
    """A reply with one event at each time, each of so many tokens."""
    events = tuple(Event(ns, ns, Kind.CONTENT, n_tokens) for ns in at_ns)
    fields: dict[str, object] = {
        "id": f"p#{number}", "prompt_id": "p", "category": "c", "repeat": number, "block": 0,
        "max_tokens": 512, "scheduled_ns": None, "connect_ns": None, "sent_ns": 0,
        "end_ns": at_ns[-1] if at_ns else 0, "events": events, "text": "word " * len(events),
        "reasoning": "", "tool_calls": "", "finish_reason": "length",
        "usage": {"prompt_tokens": 100, "completion_tokens": len(events) * (n_tokens or 1)},
    }  # fmt: skip
    return RequestTrace(**{**fields, **changes})  # type: ignore[arg-type]


def served(lengths: list[int], concurrency: int, step: Step, prefill_ns: int = 40 * MS) -> list[RequestTrace]:
    """A closed loop on a server that prefills one prompt at a time, which holds up everybody's next token."""
    waiting, active, clock = list(enumerate(lengths)), {}, 0
    times: dict[int, list[int]] = defaultdict(list)
    while waiting or active:
        if waiting and len(active) < concurrency:
            number, left = waiting.pop(0)
            active[number] = left
            clock += prefill_ns
        else:
            clock += step(len(active))
        for number in list(active):
            times[number].append(clock)
            active[number] -= 1
            if not active[number]:
                del active[number]
    return [trace(number, at_ns) for number, at_ns in times.items()]


def affine(n: int) -> int:
    return (10 + 3 * n) * MS


@pytest.mark.parametrize("concurrency", [1, 2, 3, 5])
def test_ramp_drain_and_prefill_are_left_out(concurrency: int):
    """Replies of many lengths: prefills fall into the others' decoding all the time."""
    lengths = [40 + 17 * i % 61 for i in range(4 * concurrency)]
    found = point(served(lengths, concurrency, affine), concurrency)
    assert found is not None
    assert (found.step_s, found.low_s, found.high_s) == pytest.approx([affine(concurrency) / 1e9] * 3)
    assert (found.requests, found.errors, found.concurrency) == (4 * concurrency, 0, concurrency)
    assert found.context_tokens == pytest.approx(100 + sum(lengths) / len(lengths) / 2)


def test_the_plain_tpot_of_the_same_replies_would_be_off():
    """That the test above could fail: with prefills and the ramp in it, the time per token is another."""
    traces = served([40, 57, 74, 91, 47, 64, 81, 98], 2, affine)
    events = traces[0].events
    plain_ns = (events[-1].read_ns - events[0].read_ns) / (len(events) - 1)
    assert plain_ns != pytest.approx(affine(2), rel=0.01)


def test_a_server_with_fewer_slots_gives_no_point():
    assert point(served([64] * 8, 2, affine), 4) is None


def test_too_few_stretches_give_no_point():
    assert point(served([20] * 2, 2, affine), 2) is None
    assert point([], 1) is None


def test_spans_of_full_concurrency_end_where_the_next_begins():
    replies = [reply(trace(i, times)) for i, times in enumerate([[0, 10], [4, 20], [10, 15]])]
    assert full_spans([one for one in replies if one], 2) == [(4, 10), (10, 15)]


def test_a_slow_phase_widens_the_interval():
    slow = served([80, 80, 80, 80], 1, lambda n: 10 * MS)
    later = [trace(9, [10**12 + 30 * MS * i for i in range(80)])]
    steady, mixed = point(slow, 1), point([*slow, *later], 1)
    assert steady is not None and mixed is not None
    assert steady.high_s == pytest.approx(0.010) and mixed.step_s == pytest.approx(0.010)
    even = point(
        [*slow, *(trace(9 + j, [(1 + j) * 10**12 + 30 * MS * i for i in range(80)]) for j in range(4))], 1
    )
    assert even is not None and even.low_s == pytest.approx(0.010) and even.high_s == pytest.approx(0.030)


def test_doubtful_stamps_widen_the_interval_by_the_lag():
    traces = served([80] * 4, 1, lambda n: 10 * MS)
    sure, doubtful = point(traces, 1), point(traces, 1, ("the client fell behind",), 0.008)
    assert sure is not None and doubtful is not None
    assert doubtful.step_s == sure.step_s and doubtful.reasons == ("the client fell behind",)
    assert doubtful.low_s == pytest.approx(sure.low_s - 0.002)
    assert doubtful.high_s == pytest.approx(sure.high_s + 0.002)
    longer = point(traces, 1, ("the client fell behind",), 0.05)
    assert longer is not None and longer.n == 16
    assert longer.high_s == pytest.approx(sure.high_s + 2 * 0.05 / 20)
    assert point(traces, 1, ("the client fell behind",), 1.0) is None


def test_a_client_that_reads_in_bursts_does_not_make_steps_much_shorter():
    """Steps of 1 ms; every 20 ms the client reads what came since, one token every tenth of a ms."""
    late = [[20 * MS * (1 + i // 20) + i % 20 * MS // 10 for i in range(400)] for _ in range(4)]
    traces = [trace(n, [ns + n * 10**10 for ns in at_ns]) for n, at_ns in enumerate(late)]
    found = point(traces, 1, (), 0.020)
    assert found is not None and found.step_s == pytest.approx(0.001, rel=1 / LAGS)
    fooled = point(traces, 1, (), 0.0)
    assert fooled is not None and fooled.step_s < 0.0005


def test_tokens_that_share_a_chunk_or_a_read_are_counted():
    pairs = trace(0, [20 * MS * i for i in range(60)], n_tokens=2)
    assert stretches_s([one for one in [reply(pairs)] if one], 1) == pytest.approx([0.010] * 15)
    unknown = trace(0, [20 * MS * i for i in range(60)], n_tokens=None)
    counted = reply(trace(0, [20 * MS * i for i in range(60)], None, usage={"completion_tokens": 120}))
    assert counted is not None and counted.tokens[-1] == 120
    single = reply(unknown)
    assert single is not None and single.tokens[-1] == 60
    merged = tuple(event._replace(read_id=i // 2, read_ns=i // 2) for i, event in enumerate(unknown.events))
    read = reply(trace(0, [0], None, events=merged, usage={"completion_tokens": 60}, text="word " * 60))
    assert read is not None and list(read.tokens[:3]) == [2, 4, 6]


def test_reasoning_that_was_not_streamed_is_in_no_stretch():
    usage = {"completion_tokens": 1060, "completion_tokens_details": {"reasoning_tokens": 1000}}
    hidden = reply(trace(0, [20 * MS * i for i in range(60)], None, usage=usage))
    assert hidden is not None and hidden.tokens[-1] == 60


def test_a_reply_that_broke_off_still_was_in_flight():
    whole = trace(0, [10 * MS * i for i in range(80)])
    broken = trace(1, [10 * MS * i for i in range(50)], usage=None, error=RequestError("StreamError", "x"))
    found = point([whole, broken], 2)
    assert found is not None and found.errors == 1 and found.step_s == pytest.approx(0.010)
    assert found.n == round(49 / 8)


def test_a_reply_in_one_read_has_no_time():
    assert reply(trace(0, [5])) is None and reply(trace(0, [])) is None
