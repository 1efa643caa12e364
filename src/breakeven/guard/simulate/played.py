"""Played: one policy's steps on the record, and the speedups that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.counters import SpecCounters
from breakeven.guard.simulate.looked import Looked
from breakeven.guard.simulate.records import Kind, Played, Request, Speed
from breakeven.guard.simulate.times import Times
from breakeven.replay.steps import Steps
from breakeven.replay.tally import totals

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Served:
    """The requests of a record, in its order."""

    ids: tuple[str, ...]
    categories: tuple[str, ...]
    emitted: NDArray[np.int64]
    """Tokens by decode steps; shape (requests,). Requests without any are in no figure."""

    def played(
        self,
        kind: Kind,
        name: str,
        spent: Floats,
        counters: SpecCounters,
        settings: Mapping[str, Any],
        flags: str = "",
    ) -> Played:
        """`spent`: the time of each request's steps, in plain steps; shape (requests,)."""
        rows = [
            (Request(id_, category, emitted, emitted / time), time)
            for id_, category, emitted, time in zip(
                self.ids, self.categories, self.emitted.tolist(), spent.tolist(), strict=True
            )
            if emitted
        ]
        names = dict.fromkeys(row.category for row, _ in rows)
        by_category = {name: _speed([row for row in rows if row[0].category == name]) for name in names}
        requests = tuple(row for row, _ in rows)
        return Played(kind, name, settings, flags, _speed(rows), by_category, counters, requests)


def served_of(looked: Looked) -> Served:
    """The requests of the record."""
    emitted = np.maximum(np.diff(looked.tokens.positions) - looked.first, 0)
    return Served(looked.batch.ids, looked.batch.categories, emitted)


def play(
    served: Served, kind: Kind, name: str, steps: Steps, times: Times, settings: Mapping[str, Any]
) -> Played:
    """Of steps of one sequence at a time."""
    request = np.repeat(np.arange(len(steps.counts)), steps.counts)
    spent: Floats = np.bincount(request, times.whole[steps.drafted], len(steps.counts)).astype(np.float64)
    return served.played(kind, name, spent, totals(steps), settings)


def _speed(rows: list[tuple[Request, float]]) -> Speed:
    """Of requests and their times."""
    speedups = [row.speedup for row, _ in rows]
    total = sum(row.emitted_tokens for row, _ in rows) / sum(time for _, time in rows)
    worst = min((row for row, _ in rows), key=lambda row: row.speedup)
    return Speed(float(np.exp(np.mean(np.log(speedups)))), total, worst)
