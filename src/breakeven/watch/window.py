"""Window: the readings of one server's /metrics over the last seconds, and what was counted between them."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from breakeven.acceptance import load, prometheus
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page


@dataclass(frozen=True, slots=True)
class Reading:
    """One page."""

    at_s: float
    """By a clock that never goes back."""
    page: Page


@dataclass(frozen=True, slots=True)
class Counted:
    """What happened from the first reading of a window to its last."""

    seconds: float
    counters: SpecCounters | None
    """None where a page counts nothing of speculation."""
    load: Load
    running: tuple[float, ...]
    """Requests in the batch at each reading that found any."""


class Window:
    """Pages of the last `span_s` seconds, two at least. One whose counters fell is of a server that started
    anew: what was read before it is dropped."""

    def __init__(self, span_s: float) -> None:
        self.resets = 0
        self._span_s = span_s
        self._readings: deque[Reading] = deque()

    @property
    def last(self) -> Page | None:
        return self._readings[-1].page if self._readings else None

    def add(self, reading: Reading) -> None:
        if self.last is not None and prometheus.is_reset(self.last, reading.page):
            self.resets += 1
            self._readings.clear()
        self._readings.append(reading)
        while len(self._readings) > 2 and self._readings[1].at_s <= reading.at_s - self._span_s:
            self._readings.popleft()

    def counted(self) -> Counted | None:
        """None before the second reading."""
        if len(self._readings) < 2:
            return None
        first, last = self._readings[0], self._readings[-1]
        gauges = [reading.page.load.running for reading in self._readings]
        return Counted(
            seconds=last.at_s - first.at_s,
            counters=prometheus.between(first.page, last.page),
            load=load.between(first.page.load, last.page.load),
            running=tuple(n for n in gauges if n is not None and math.isfinite(n) and n > 0),
        )
