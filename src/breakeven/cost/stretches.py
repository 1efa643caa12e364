"""Stretches: what a decode step took while exactly c replies were being decoded, from the traces of one load.

In a closed loop of c requests, all c are between their first and their last token only while none of them
waits, is in prefill, or has ended. That time is taken, and no other: the ramp at the start, the drain at the
end and every prefill between two replies are left out by the events' own times. (Prefill of somebody else's
requests cannot be seen from a client.)

It is cut into stretches of about STEPS tokens of each reply, or more where the client lags. In each, a
reply's time per token is (t_last − t_first) / tokens after the first read, and the stretch has the median of
its replies, which take their steps together. Stretches, not replies, are what scatters independently: they
are what is resampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from breakeven.cost.curve import CurvePoint
from breakeven.latency.hidden import hidden_tokens
from breakeven.latency.tokens import carriers, count, total
from breakeven.trace.records import Event, RequestTrace

STEPS = 8
"""Long enough that a late read moves a stretch little, short enough that a few replies give dozens."""
LEAST_STEPS = 4
"""Shorter spans of full concurrency are left out."""
LAGS = 4
"""A stretch lasts at least so many times the client's lag (p99). A client that reads late reads tokens in
bursts, in which hardly any time passes: a stretch as short as that would make a step far too short. A burst
at its end moves a longer one by 1 / LAGS at most."""
LEAST_STRETCHES = 4
"""For a median with an interval."""
RESAMPLES = 2000
CONFIDENCE_PERCENT = 95

Span = tuple[int, int]
"""From and to, ns."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reads of one reply that carried tokens."""

    read_ns: NDArray[np.int64]
    """Rising. [reads]"""
    tokens: NDArray[np.float64]
    """Tokens that had come by then. [reads]"""

    def within(self, span: Span) -> tuple[int, float]:
        """Nanoseconds from the first read in the span to the last, and the tokens after the first."""
        first = int(np.searchsorted(self.read_ns, span[0], "left"))
        last = int(np.searchsorted(self.read_ns, span[1], "right")) - 1
        if last <= first:
            return 0, 0.0
        return int(self.read_ns[last] - self.read_ns[first]), float(self.tokens[last] - self.tokens[first])


def reply(trace: RequestTrace) -> Reply | None:
    """None without two reads. A chunk of unknown size has the mean of what the known ones leave of the
    tokens counted by usage; one token where usage counts reasoning that was never streamed.
    """
    n = total(trace)
    events = carriers(trace, n)
    known = sum(event.n_tokens or 0 for event in events)
    unknown = sum(event.n_tokens is None for event in events)
    spread = unknown and hidden_tokens(trace, n) is None
    each = max(((n.tokens or 0) - known) / unknown, 1.0) if spread else 1.0
    reads = [tuple(group) for _, group in groupby(events, key=lambda event: event.read_id)]
    if len(reads) < 2:
        return None
    read_ns = np.array([read[0].read_ns for read in reads], dtype=np.int64)
    return Reply(read_ns, np.cumsum([_tokens(read, each) for read in reads]))


def _tokens(read: Sequence[Event], each: float) -> float:
    return sum(each if event.n_tokens is None else event.n_tokens for event in read)


def full_spans(replies: Sequence[Reply], concurrency: int) -> list[Span]:
    """When exactly that many replies were between their first and their last token."""
    borders = sorted(
        [(int(one.read_ns[0]), 1) for one in replies] + [(int(one.read_ns[-1]), -1) for one in replies]
    )
    spans, active = [], 0
    for (here, change), (there, _) in pairwise(borders):
        active += change
        if active == concurrency and there > here:
            spans.append((here, there))
    return spans


def stretches_s(replies: Sequence[Reply], concurrency: int, steps: int = STEPS) -> list[float]:
    """Seconds of a step in each stretch of full concurrency, of about `steps` each, in the order of time."""
    found = []
    for span in full_spans(replies, concurrency):
        inside = _decoded_in(replies, span)
        length = float(np.median([one.within(span)[1] for one in inside]))
        if length < max(LEAST_STEPS, steps / 2):
            continue
        borders = np.linspace(*span, max(round(length / steps), 1) + 1).round().astype(np.int64).tolist()
        found += [step for piece in pairwise(borders) if (step := _step_s(inside, piece)) is not None]
    return found


def steps_per_stretch(replies: Sequence[Reply], concurrency: int, lag_s: float) -> int:
    """STEPS, or as many as take LAGS times the client's lag."""
    seen = [
        one.within(span) for span in full_spans(replies, concurrency) for one in _decoded_in(replies, span)
    ]
    total_ns, tokens = sum(ns for ns, _ in seen), sum(n for _, n in seen)
    return max(STEPS, math.ceil(LAGS * lag_s * 1e9 * tokens / total_ns)) if total_ns else STEPS


def _decoded_in(replies: Sequence[Reply], span: Span) -> list[Reply]:
    return [one for one in replies if one.read_ns[0] <= span[0] and one.read_ns[-1] >= span[1]]


def _step_s(replies: Sequence[Reply], span: Span) -> float | None:
    inside = [one.within(span) for one in replies]
    each = [ns / tokens for ns, tokens in inside if ns and tokens > 0]
    return float(np.median(each)) / 1e9 if each else None


def point(
    traces: Sequence[RequestTrace], concurrency: int, reasons: tuple[str, ...] = (), lag_s: float = 0.0
) -> CurvePoint | None:
    """The measured point; None where fewer than LEAST_STRETCHES stretches had the full concurrency.

    `lag_s` is how late the client read at times (p99). The interval is the percentile bootstrap of the
    median over stretches. Where the client does not vouch for its stamps, for `reasons`, each end of a
    stretch may be off by the lag, and the interval is widened by it.
    """
    replies = [found for trace in traces if (found := reply(trace)) is not None]
    steps = steps_per_stretch(replies, concurrency, lag_s)
    steps_s = np.array(stretches_s(replies, concurrency, steps))
    if len(steps_s) < LEAST_STRETCHES:
        return None
    step_s = float(np.median(steps_s))
    low_s, high_s = _interval(steps_s)
    low_s = min(low_s, step_s)
    doubt_s = 2 * lag_s / steps if reasons else 0.0
    return CurvePoint(
        concurrency=concurrency,
        step_s=step_s,
        low_s=max(low_s - doubt_s, low_s / 2),
        high_s=max(high_s, step_s) + doubt_s,
        n=len(steps_s),
        requests=len(traces),
        errors=sum(trace.error is not None for trace in traces),
        context_tokens=_context(traces),
        reasons=reasons,
    )


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    tail = (100 - CONFIDENCE_PERCENT) / 2
    low, high = np.percentile(np.median(values[drawn], axis=1), [tail, 100 - tail])
    return float(low), float(high)


def _context(traces: Sequence[RequestTrace]) -> float | None:
    lengths = [
        prompt + (total(trace).tokens or 0) / 2
        for trace in traces
        if (prompt := count((trace.usage or {}).get("prompt_tokens"))) is not None
    ]
    return float(np.mean(lengths)) if lengths else None
