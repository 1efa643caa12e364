"""LagMonitor: how late the event loop runs what is due, sampled all along."""

from __future__ import annotations

import asyncio
import math
from array import array
from time import perf_counter_ns

SAMPLE_S = 0.01
_LOWEST_MS = 0.01
_STEP = 1.05
"""Bucket borders grow by 5 %, which bounds the error of a percentile."""
_BUCKETS = 400


class LagHistogram:
    """Counts in geometric buckets from 10 µs to an hour: memory does not grow with the run."""

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * _BUCKETS))
        self.n = 0
        self.max_ms = 0.0

    def add(self, lag_ms: float) -> None:
        bucket = 0 if lag_ms <= _LOWEST_MS else math.ceil(math.log(lag_ms / _LOWEST_MS, _STEP))
        self._counts[min(bucket, _BUCKETS - 1)] += 1
        self.n += 1
        self.max_ms = max(self.max_ms, lag_ms)

    def percentile_ms(self, percent: float) -> float | None:
        """Upper border of the bucket that holds the percentile, at most the maximum; None without samples."""
        rank = math.ceil(self.n * percent / 100)
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= rank:
                return float(min(_LOWEST_MS * _STEP**bucket, self.max_ms))
        return None

    def summary(self) -> dict[str, float | None]:
        """p50, p99 and max, in milliseconds."""
        largest = self.max_ms if self.n else None
        return {"p50": self.percentile_ms(50), "p99": self.percentile_ms(99), "max": largest}


class LagMonitor:
    """Asks the loop to call every 10 ms and notes how late it did.

    One block of 300 ms delays one sample, but would have delayed the thirty due meanwhile; those are counted
    as HdrHistogram's correction for coordinated omission counts them.
    """

    def __init__(self) -> None:
        self.histogram = LagHistogram()
        self._loop = asyncio.get_running_loop()
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due_ns = perf_counter_ns() + int(SAMPLE_S * 1e9)
        self._timer = self._loop.call_later(SAMPLE_S, self._sample)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sample(self) -> None:
        lag_ms = max((perf_counter_ns() - self._due_ns) / 1e6, 0.0)
        self.histogram.add(lag_ms)
        missed_ms = lag_ms - SAMPLE_S * 1e3
        while missed_ms > 0:
            self.histogram.add(missed_ms)
            missed_ms -= SAMPLE_S * 1e3
        self.start()
