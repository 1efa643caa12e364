"""Witness: what the load really was, in running sums and compact arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from breakeven.trace.records import RequestTrace

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many replies were being decoded at once, over the time in which at least one was."""

    peak: int
    mean: float
    windows: int
    """Replies that took any time between their first and their last token."""


class Witness:
    """Told of every start and end. Keeps 24 bytes a request, and nothing of its text."""

    def __init__(self) -> None:
        self.started = 0
        self.finished = 0
        self.failed = 0
        self.drain_ns: int | None = None
        """When the requests ran out; from then on fewer and fewer are in flight."""
        self._in_flight = 0
        self._changed_ns = perf_counter_ns()
        self._request_ns = 0
        self._observed_ns = 0
        self._first_ns = array("q")
        self._last_ns = array("q")
        self._tpot_s = array("d")
        self.due_ns = array("q")
        self.fired_ns = array("q")

    def watch(self, requests: Iterable[Item]) -> Iterator[Item]:
        """The same requests, one at a time; notes when they have run out."""
        yield from requests
        if self.drain_ns is None:
            self._advance(perf_counter_ns())
            self.drain_ns = self._changed_ns

    def start(self, due_ns: int | None) -> None:
        now_ns = perf_counter_ns()
        self._advance(now_ns)
        self._in_flight += 1
        self.started += 1
        if due_ns is not None:
            self.due_ns.append(due_ns)
            self.fired_ns.append(now_ns)

    def end(self, trace: RequestTrace | None) -> None:
        """`trace` is None if the request was dropped."""
        self._advance(perf_counter_ns())
        self._in_flight -= 1
        if trace is None:
            return
        self.finished += 1
        self.failed += trace.error is not None
        if trace.error is None and trace.events:
            self._window(trace)

    def in_flight_mean(self) -> float | None:
        """Weighted by time, until the requests ran out; None if they did so at once."""
        return self._request_ns / self._observed_ns if self._observed_ns > 0 else None

    def tpot_s(self) -> float | None:
        """Median of (t_last − t_first) / (tokens − 1): near enough to judge a lag by, never reported."""
        return float(np.median(np.frombuffer(self._tpot_s))) if self._tpot_s else None

    def overlap(self) -> Overlap | None:
        """None if no reply took any time to decode."""
        if not self._first_ns:
            return None
        return _overlap(np.frombuffer(self._first_ns, np.int64), np.frombuffer(self._last_ns, np.int64))

    def _advance(self, now_ns: int) -> None:
        if self.drain_ns is None:
            self._request_ns += self._in_flight * (now_ns - self._changed_ns)
            self._observed_ns += now_ns - self._changed_ns
        self._changed_ns = now_ns

    def _window(self, trace: RequestTrace) -> None:
        first_ns, last_ns = trace.events[0].read_ns, trace.events[-1].read_ns
        tokens = _tokens(trace)
        if last_ns > first_ns and tokens > 1:
            self._first_ns.append(first_ns)
            self._last_ns.append(last_ns)
            self._tpot_s.append((last_ns - first_ns) / 1e9 / (tokens - 1))


def _tokens(trace: RequestTrace) -> int:
    usage: Any = (trace.usage or {}).get("completion_tokens")
    return usage if isinstance(usage, int) and usage > 0 else len(trace.events)


def _overlap(first_ns: NDArray[np.int64], last_ns: NDArray[np.int64]) -> Overlap:
    """Sweeps the borders in order of time; at equal times an end comes before a start."""
    times = np.concatenate([last_ns, first_ns])
    changes = np.concatenate([np.full(len(last_ns), -1), np.full(len(first_ns), 1)])
    order = np.argsort(times, kind="stable")
    active = np.cumsum(changes[order])
    spans_ns = np.diff(times[order])
    busy_ns = int(spans_ns[active[:-1] > 0].sum())
    return Overlap(int(active.max()), float((last_ns - first_ns).sum() / busy_ns), len(first_ns))
