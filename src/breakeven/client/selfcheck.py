"""SelfCheck: whether the client did what was asked of it. If not, the run is void, and says why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.client.lag import LagMonitor
from breakeven.client.schedule import ClosedLoop, OpenLoop
from breakeven.client.witness import Overlap, Witness

__all__ = ["LagMonitor", "SelfCheck", "judge"]

LEAST_SHARE = 0.9
"""Of the asked concurrency or rate. A tenth less load moves latency by less than runs differ anyway."""
MOST_LAG_OF_TPOT = 0.2
LEAST_LAG_MS = 5.0
"""Below it a lag moves no figure that is reported: stamps are taken when bytes are read."""
ONE_AT_A_TIME = 1.05
"""Mean number of replies decoded at once, up to which the server is said to decode one at a time."""
LATE_MS = 20.0
"""p99 of how late an open loop may send."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """None is absent: not asked for, or too few requests to tell."""

    ok: bool
    reasons: tuple[str, ...]
    """Why the run is void, each with what to do; empty if ok."""
    event_loop_lag_ms: Mapping[str, float | None]
    """p50, p99, max."""
    event_loop: str
    """`uvloop` or `asyncio`."""
    asked_concurrency: int | None
    in_flight_mean: float | None
    """Weighted by time, before the last replies drain."""
    decoding_peak: int | None
    decoding_mean: float | None
    """Replies between first and last token at once, over the time in which there were any."""
    asked_rate_per_s: float | None
    achieved_rate_per_s: float | None
    late_ms: Mapping[str, float | None] | None
    """How late the open loop sent: p50, p99, max."""


def judge(schedule: ClosedLoop | OpenLoop, witness: Witness, lag: LagMonitor, event_loop: str) -> SelfCheck:
    closed = schedule if isinstance(schedule, ClosedLoop) else None
    opened = schedule if isinstance(schedule, OpenLoop) else None
    overlap = witness.overlap()
    late_ms = _late_ms(witness) if opened else None
    reasons = [*_lag_reasons(lag, witness)]
    if closed:
        reasons += _concurrency_reasons(closed.concurrency, witness, overlap)
    if opened and late_ms:
        reasons += _rate_reasons(opened, witness, late_ms)
    return SelfCheck(
        ok=not reasons,
        reasons=tuple(reasons),
        event_loop_lag_ms=lag.histogram.summary(),
        event_loop=event_loop,
        asked_concurrency=closed.concurrency if closed else None,
        in_flight_mean=witness.in_flight_mean(),
        decoding_peak=overlap.peak if overlap else None,
        decoding_mean=overlap.mean if overlap else None,
        asked_rate_per_s=opened.rate_per_s if opened else None,
        achieved_rate_per_s=_rate_per_s(witness.fired_ns) if opened else None,
        late_ms=late_ms,
    )


def _concurrency_reasons(asked: int, witness: Witness, overlap: Overlap | None) -> Iterator[str]:
    mean = witness.in_flight_mean()
    if witness.started < asked:
        yield (
            f"{witness.started} requests cannot keep {asked} in flight: "
            f"raise --repeats, or type --concurrency {max(witness.started, 1)}"
        )
    elif asked >= 2 and mean is not None and mean < LEAST_SHARE * asked:
        yield f"only {mean:.1f} of {asked} requests were in flight on average: lower --concurrency"
    if asked >= 2 and overlap and overlap.windows >= 2 and overlap.mean < ONE_AT_A_TIME:
        yield (
            f"{asked} requests at once were asked, but the server decoded one at a time: "
            "give it more slots (llama.cpp: --parallel, vLLM: --max-num-seqs), or type --concurrency 1"
        )


def _rate_reasons(asked: OpenLoop, witness: Witness, late_ms: Mapping[str, float | None]) -> Iterator[str]:
    """A Poisson schedule's own rate differs from the asked one by chance: it is the schedule that counts."""
    planned, achieved = _rate_per_s(witness.due_ns), _rate_per_s(witness.fired_ns)
    if planned and achieved and achieved < LEAST_SHARE * planned:
        yield f"sent {achieved:.1f} requests per second where {asked.rate_per_s:g} were asked: lower --rate"
    p99 = late_ms["p99"]
    if p99 is not None and p99 > LATE_MS:
        yield f"requests were sent up to {p99:.0f} ms late (p99): lower --rate, or use a faster client"


def _lag_reasons(lag: LagMonitor, witness: Witness) -> Iterator[str]:
    p99, tpot_s = lag.histogram.percentile_ms(99), witness.tpot_s()
    if p99 is None or tpot_s is None:
        return
    if p99 > LEAST_LAG_MS and p99 > MOST_LAG_OF_TPOT * tpot_s * 1e3:
        yield (
            f"the client fell behind: its event loop lagged {p99:.1f} ms (p99) where a token takes "
            f"{tpot_s * 1e3:.1f} ms: free the machine, run the client elsewhere, or lower --concurrency"
        )


def _late_ms(witness: Witness) -> dict[str, float | None] | None:
    if not witness.due_ns:
        return None
    late = (np.frombuffer(witness.fired_ns, np.int64) - np.frombuffer(witness.due_ns, np.int64)) / 1e6
    return {"p50": float(np.median(late)), "p99": float(np.percentile(late, 99)), "max": float(late.max())}


def _rate_per_s(times_ns: Sequence[int]) -> float | None:
    if len(times_ns) < 2 or times_ns[-1] <= times_ns[0]:
        return None
    return (len(times_ns) - 1) / ((times_ns[-1] - times_ns[0]) / 1e9)
