"""What the replies of a run are like: early and late, gaps, truncation, loops, the cache, the self-check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.diagnose.evidence import Replies
from breakeven.diagnose.replies import STALL_S, Timed, gaps_s, replies, stalled, usual_gap_s, warm_up
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import Event, Kind, RequestTrace
from breakeven.trace.run import load_run
from tests.cases.builders import reply
from tests.cases.builders import run as traces_of
from tests.unit.trace.builders import PROMPTS, meta


def seen(folder: Path, traces: Iterable[RequestTrace], **changes: object) -> Replies:
    """Of a run with these requests, sent one second after another."""
    writer = RunWriter.create(folder / "run", meta(**changes), PROMPTS)
    for number, trace in enumerate(traces):
        later = number * 1_000_000_000
        events = tuple(event._replace(read_ns=event.read_ns + later) for event in trace.events)
        writer.append(
            replace(trace, sent_ns=trace.sent_ns + later, end_ns=trace.end_ns + later, events=events)
        )
    writer.finish(replace(writer.meta, status="complete"))
    return replies(load_run(folder / "run"))


def test_a_run_with_nothing_unusual(tmp_path: Path) -> None:
    found = seen(tmp_path, traces_of(tokens=40, cached_tokens=25))
    assert (found.requests, found.failed, found.looping, found.truncated_in_reasoning) == (24, 0, (), 0)
    assert found.checked_for_loops == 24 and found.checked_tokens == 24 * 40 and found.max_tokens == 256
    assert found.early_tpot_s == pytest.approx(0.02, rel=0.02) == found.late_tpot_s
    assert found.early_requests == 4 and found.early_same_prompts
    assert found.longest_gap_s == pytest.approx(0.02, rel=0.05) == found.median_gap_s and found.stalled == 0
    assert found.prefix_hit_rate == 0.25 and found.client_reasons == ()


def test_nothing_but_failures(tmp_path: Path) -> None:
    found = seen(tmp_path, [reply(f"p{i}", error="gone") for i in range(3)])
    assert found == Replies(3, failed=3, max_tokens=256)


def test_the_first_replies_are_beside_later_ones_to_the_same_prompts(tmp_path: Path) -> None:
    """The first three of eight prompts are asked four times as slowly at first; speeds of prompts differ."""
    speeds = [50.0, 25.0, 100.0, 50.0, 50.0, 25.0, 25.0, 25.0]
    slow = traces_of(speeds, noise=0.0, speed_of=lambda i, repeat: 0.25 if repeat == 0 and i < 3 else 1.0)
    found = seen(tmp_path, slow)
    assert found.early_tpot_s and found.late_tpot_s
    assert found.early_tpot_s / found.late_tpot_s == pytest.approx(4**0.75)


def timed(*speeds_s: float, prompts: int = 100, category: str = "c") -> list[Timed]:
    return [Timed(i, f"p{i % prompts}", category, tpot_s) for i, tpot_s in enumerate(speeds_s)]


def test_too_few_later_replies_are_no_measure() -> None:
    assert warm_up(timed(0.5, 0.1, 0.1, prompts=1), 1).early_s is None
    assert warm_up(timed(0.5, 0.1, 0.1, 0.1, prompts=1), 1) == (0.5, pytest.approx(0.1), 1, True)


def test_as_many_are_early_as_start_at_once() -> None:
    assert warm_up(timed(*[0.1] * 40, prompts=20), 12).requests == 12


def test_without_repeats_all_of_the_first_must_be_slower_than_all_others() -> None:
    later = [0.10, 0.11, 0.12, 0.09, 0.15, 0.10, 0.10, 0.10]
    found = warm_up(timed(0.3, 0.3, 0.3, 0.16, *later), 1)
    assert found.early_s and found.late_s and not found.same_prompts
    assert warm_up(timed(0.3, 0.3, 0.3, 0.14, *later), 1).early_s is None
    assert warm_up(timed(0.3, 0.3, 0.3, 0.3, *later[:7]), 1).early_s is None, "too few others"
    every = timed(0.3, 0.3, 0.3, 0.3, *later)
    mixed = [*every[:4], *(one._replace(category="d") for one in every[4:])]
    assert warm_up(mixed, 1).early_s is None, "others of another category are no measure"


def test_order_is_of_sending_not_of_ending() -> None:
    ordered = timed(0.4, 0.4, 0.4, 0.4, *[0.1] * 4, prompts=4)
    assert warm_up(ordered[::-1], 1).early_s == pytest.approx(0.4)


def test_tokens_of_one_read_have_no_gap() -> None:
    events = tuple(Event(at, read, Kind.CONTENT, 1) for at, read in ((5, 0), (5, 0), (9, 1), (9, 1)))
    assert gaps_s(replace(reply(), events=events)) == [4e-9]
    assert gaps_s(replace(reply(), events=())) == []


def test_the_usual_gap_is_a_step_also_where_tokens_of_a_step_come_one_by_one() -> None:
    assert usual_gap_s([0.05, 1e-5, 1e-5, 1e-5, 1e-5] * 20) == 0.05
    assert usual_gap_s([]) is None and usual_gap_s([0.0, 0.0]) is None


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=50))
def test_half_of_the_time_is_in_gaps_up_to_the_usual_one(gaps: list[float]) -> None:
    usual = usual_gap_s(gaps)
    assert usual in gaps
    assert sum(gap for gap in gaps if gap <= usual) >= sum(gaps) / 2 * (1 - 1e-9)
    assert sum(gap for gap in gaps if gap < usual) <= sum(gaps) / 2 * (1 + 1e-9)


def test_what_stalls() -> None:
    assert stalled([0.1, STALL_S, 3.0], 0.01) == 2
    assert stalled([0.1, STALL_S, 3.0], 0.1) == 1, "slow steps need a longer stop"


def test_one_reply_that_stood_still(tmp_path: Path) -> None:
    traces = traces_of(noise=0.0)
    late = [
        event._replace(read_ns=event.read_ns + 2_000_000_000 * (i > 5))
        for i, event in enumerate(traces[3].events)
    ]
    traces[3] = replace(traces[3], events=tuple(late), end_ns=late[-1].read_ns)
    found = seen(tmp_path, traces)
    assert found.stalled == 1 and found.longest_gap_s == pytest.approx(2.02)
    assert found.median_gap_s == pytest.approx(0.02)


def test_loops_and_truncation(tmp_path: Path) -> None:
    loop = reply("p1", text="one " + "no, yes, " * 60, tokens=100, finish_reason="length")
    cut = reply("p2", reasoning="so let us see", tokens=100, finish_reason="length")
    found = seen(tmp_path, [reply("p0", tokens=100), loop, cut])
    assert found.looping == ("p1#0",) and found.checked_for_loops == 3 and found.checked_tokens == 300
    assert 95 <= found.looping_tokens <= 100 and found.loop_periods == (2, 2)
    assert found.truncated_in_reasoning == 1


def test_the_self_check_is_told(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(reply())
    reasons = ["only 1.2 of 2 requests were in flight on average: lower --concurrency"]
    writer.finish(replace(writer.meta, status="void", self_check={"ok": False, "reasons": reasons}))
    assert replies(load_run(tmp_path / "run")).client_reasons == tuple(reasons)
