"""One RequestTrace → RequestLatency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from breakeven.latency.hidden import HIDDEN_REASONING, hidden_tokens, late_first_token
from breakeven.latency.records import RequestLatency
from breakeven.latency.tokens import (
    NOTHING_CAME,
    FirstRead,
    Total,
    carriers,
    first_read,
    share,
    total,
)
from breakeven.trace.records import Event, Kind, RequestTrace

NS = 1e-9
ONE_READ = "all tokens came in one read"
BACKWARDS = "the time stamps run backwards"
NO_UPPER_COUNT = "chunks were counted as tokens: there may be any number more"


@dataclass(frozen=True, slots=True)
class _Times:
    """Times since the request was written, and why those that are None are absent."""

    ttft_s: float | None = None
    ttft_content_s: float | None = None
    e2e_s: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Decode:
    """TPOT and its parts; None is absent, for `reason`."""

    tpot_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    reason: str | None = None


def request_latency(trace: RequestTrace) -> RequestLatency:
    """The figures of one request.

    A failed request has counts but no times. Times are absent, with a warning, where stamps run backwards.
    The server's own timings are never used. Chunks that came in one read share its time.
    """
    n = total(trace)
    events = carriers(trace, n)
    first = first_read(n, events, trace.output_token_ids is not None)
    hidden = hidden_tokens(trace, n)
    parts = share(trace, n, events, hidden is not None)
    fault = _fault(trace)
    decode = _Decode(reason=fault or hidden) if fault or hidden else _decode(n, events, first)
    times = _times(trace, events, fault)
    late = late_first_token(trace, times.ttft_s, decode.tpot_s)
    backwards = BACKWARDS if fault == BACKWARDS else None
    warnings = (
        n.warning,
        parts.warning,
        f"{HIDDEN_REASONING}: no decode speed is claimed" if hidden else None,
        late,
        backwards,
    )
    return RequestLatency(
        ttft_s=times.ttft_s,
        ttft_content_s=times.ttft_content_s,
        e2e_s=times.e2e_s,
        tpot_s=decode.tpot_s,
        tpot_low_s=decode.low_s,
        tpot_high_s=decode.high_s,
        decode_s=decode.seconds,
        decode_tokens=decode.tokens,
        output_tokens=n.tokens,
        reasoning_tokens=parts.reasoning,
        content_tokens=parts.content,
        tokens_source=n.source,
        n_first=first.tokens if first else None,
        n_first_source=first.source if first else "unknown",
        chunks=len(events),
        truncated_in_reasoning=_truncated_in_reasoning(trace),
        warnings=tuple(warning for warning in warnings if warning),
        absent=_reasons(times, decode, n, parts.reason, first),
    )


def _truncated_in_reasoning(trace: RequestTrace) -> bool:
    answered = any(event.kind in (Kind.CONTENT, Kind.TOOL) for event in trace.events)
    return trace.error is None and trace.finish_reason == "length" and not answered


def _fault(trace: RequestTrace) -> str | None:
    """Why no time of this request can be used, or None."""
    if trace.error is not None:
        return f"the request failed: {trace.error.kind}"
    stamps = [trace.sent_ns, *(event.read_ns for event in trace.events), trace.end_ns]
    in_order = all(before <= after for before, after in pairwise(stamps))
    return None if in_order else BACKWARDS


def _times(trace: RequestTrace, events: tuple[Event, ...], fault: str | None) -> _Times:
    if fault:
        return _Times(reasons=dict.fromkeys(("ttft_s", "ttft_content_s", "e2e_s"), fault))
    content = [event for event in events if event.kind is Kind.CONTENT]
    reasons = {} if content else {"ttft_content_s": "no content token came" if events else NOTHING_CAME}
    if not events:
        reasons["ttft_s"] = NOTHING_CAME
    return _Times(
        ttft_s=(events[0].read_ns - trace.sent_ns) * NS if events else None,
        ttft_content_s=(content[0].read_ns - trace.sent_ns) * NS if content else None,
        e2e_s=(trace.end_ns - trace.sent_ns) * NS,
        reasons=reasons,
    )


def _decode(n: Total, events: tuple[Event, ...], first: FirstRead | None) -> _Decode:
    """TPOT = (t_last − t_first) / (N − n_first), with the bounds that n_first leaves."""
    if first is None or n.tokens is None:
        return _Decode(reason=NOTHING_CAME)
    if n.tokens == 1:
        return _Decode(reason="one token has none after it")
    if events[-1].read_id == events[0].read_id:
        return _Decode(reason=f"{ONE_READ}: there is no time between them")
    tokens = n.tokens - first.tokens
    seconds = (events[-1].read_ns - events[0].read_ns) * NS
    if tokens <= 0:
        return _Decode(reason="no tokens are left after the first read")
    if seconds <= 0:
        return _Decode(reason="no time passed between the first read and the last")
    return _Decode(
        tpot_s=seconds / tokens,
        low_s=None if n.source == "chunks" else seconds / (n.tokens - first.low),
        high_s=seconds / max(n.tokens - first.high, 1),
        seconds=seconds,
        tokens=tokens,
    )


def _reasons(
    times: _Times,
    decode: _Decode,
    n: Total,
    share_reason: str | None,
    first: FirstRead | None,
) -> dict[str, str]:
    reasons = dict(times.reasons)
    if decode.reason:
        names = ("tpot_s", "tpot_low_s", "tpot_high_s", "decode_s", "decode_tokens")
        reasons.update(dict.fromkeys(names, decode.reason))
    elif decode.low_s is None:
        reasons["tpot_low_s"] = NO_UPPER_COUNT
    if n.tokens is None:
        reasons["output_tokens"] = NOTHING_CAME
    if share_reason:
        reasons.update(dict.fromkeys(("reasoning_tokens", "content_tokens"), share_reason))
    if first is None:
        reasons["n_first"] = NOTHING_CAME
    return reasons
