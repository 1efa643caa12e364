from dataclasses import replace

from breakeven.compare.records import PromptSpeedup
from breakeven.interval import Interval
from breakeven.report.plots import Sample
from breakeven.report.timeline import MAX_READS, reads, timeline, timelines
from breakeven.trace.records import Event, Kind, RequestTrace
from tests.unit.report.builders import trace


def with_events(*events: tuple[float, int, Kind, int | None]) -> RequestTrace:
    """(seconds since sent, read, kind, tokens) each."""
    one = trace("p", "c", 0.02)
    return replace(one, events=tuple(Event(one.sent_ns + int(at * 1e9), *rest) for at, *rest in events))


def test_tokens_of_one_read_are_one_stroke():
    one = with_events(
        (0.1, 0, Kind.REASONING, 2),
        (0.1, 0, Kind.CONTENT, 1),
        (0.2, 1, Kind.CONTENT, 4),
        (0.3, 2, Kind.END, 0),
    )
    assert [(read.at_s, read.kind, read.tokens) for read in reads(one)] == [
        (0.1, Kind.REASONING, 3),
        (0.2, Kind.CONTENT, 4),
    ]


def test_an_end_that_counts_a_token_is_drawn_and_one_that_may_is_not():
    assert reads(with_events((0.1, 0, Kind.END, None))) == []
    assert [read.kind for read in reads(with_events((0.1, 0, Kind.END, 1)))] == [Kind.SILENT]


def test_unknown_counts_are_named():
    one = with_events((0.1, 0, Kind.CONTENT, None), (0.2, 1, Kind.CONTENT, 2))
    plot = timeline(one, one)
    assert "at least 3 tokens in 2 reads" in plot.lanes[0].text
    assert "does not count the tokens" in plot.note


def test_lanes_share_their_axes():
    a = with_events((0.1, 0, Kind.CONTENT, 1), (1.0, 1, Kind.CONTENT, 1))
    b = with_events((0.1, 0, Kind.CONTENT, 1), (0.5, 1, Kind.CONTENT, 4))
    plot = timeline(a, b)
    assert plot.lanes[0].paths == (("content", "M99 1000V750M990.1 1000V750"),)
    assert plot.lanes[1].paths == (("content", "M99 1000V750M495.1 1000V0"),)
    assert plot.note is None


def test_a_long_reply_is_cut_and_says_so():
    one = trace("p", "c", 0.01, tokens=MAX_READS + 1)
    plot = timeline(one, one)
    assert plot.lanes[0].paths[0][1].count("M") == MAX_READS
    assert f"the first {MAX_READS} of {MAX_READS + 1} reads of the baseline are drawn" in plot.note


def test_a_reply_without_tokens():
    one = with_events()
    assert timeline(one, one).lanes[0].text == "baseline: no token came"


def test_the_pair_nearest_to_the_speedup_is_shown():
    prompt = PromptSpeedup("p", "c", 0.02, 0.01, Interval(2.0, 1.9, 2.1), 3)
    side = {("p", repeat): trace("p", "c", 0.02, repeat) for repeat in range(3)}
    baseline = [Sample("p", repeat, 0, 0.02) for repeat in range(3)]
    candidate = [Sample("p", repeat, 0, tpot_s) for repeat, tpot_s in enumerate((0.005, 0.0099, 0.02))]
    assert [plot.repeat for plot in timelines([prompt], side, side, (baseline, candidate))] == [1]
    assert timelines([prompt], side, side, (baseline, [])) == []
