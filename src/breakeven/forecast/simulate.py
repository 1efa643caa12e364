"""Throughput of a whole record served at a concurrency, by simulating continuous batching step after step.

All requests wait from the start. At most `concurrency` are in the batch, and a place that one step frees is
taken in the next, in the record's order. A step holds one decode step of every sequence and, in the room that
its token budget leaves, prompt tokens of the requests that came last, one after another: a prompt longer than
the room is prefilled in chunks over several steps. The step that ends a prefill gives the first token, where
Requests.first says so. A decode step carries drafted + 1 tokens and advances by accepted + 1. A step takes

    cost(sequences, their tokens, their cached tokens) + prefill_s · prompt tokens
    + step_s + (drafted_step_s if any sequence drafts) + token_s · the longest draft    (of DraftingCost)

where the cost is of the sequences that decode; without any it is that of one plain step, as the weights are
read all the same. Throughput is output tokens / the time until the last request has left, so the filling of
the batch, its draining and its stragglers are in it.

This is how vLLM schedules since V1: prefills are cut, and running sequences come before them. Left out are
requests pushed out for want of cache, prefixes found in it, and decode steps that alone exceed the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from breakeven.compare.student import t_quantile
from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import StepCost
from breakeven.forecast._batching import makespan
from breakeven.forecast.bootstrap import TAIL
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.forecast.surface import Surface, Surfaces, tabulate
from breakeven.interval import Interval

TOKEN_BUDGET = 8192
"""Tokens of a step: max_num_batched_tokens of a vLLM server on a device of 70 GiB or more that is no A100;
2048 on others (EngineArgs.get_batch_defaults in vllm/engine/arg_utils.py)."""
GROUPS = 8
"""Of the jackknife."""

Counts = NDArray[np.int64]
Drafting = tuple[float, float, float]
"""Seconds as DraftingCost has them: step_s, drafted_step_s, token_s."""


@dataclass(frozen=True, slots=True)
class _Record:
    """The steps of all requests, one after another."""

    begins: Counts
    """Where each request's are; shape (requests + 1,)."""
    drafted: NDArray[np.int32]
    accepted: NDArray[np.int32]


@dataclass(frozen=True)
class Batching:
    """What all settings share at one concurrency: the cost in tables, and how long the record takes without
    speculation. Threads may share it."""

    requests: Requests
    cost: StepCost
    concurrency: int
    most_draft: int
    """Tokens of the longest draft of any setting."""
    prefill_s: float
    """Of each prompt token."""
    token_budget: int = TOKEN_BUDGET
    surfaces: Surfaces = field(init=False, repr=False)
    _loads: tuple[Counts, ...] = field(init=False, repr=False)
    _plain_s: NDArray[np.float64] = field(init=False, repr=False)
    """By load."""

    def __post_init__(self) -> None:
        context = self.requests.context_tokens
        surfaces = tabulate(self.cost, self.concurrency, self.most_draft + 1, context)
        emitted = self.requests.emitted_tokens
        none = np.zeros(int(emitted.sum()), np.int32)
        plain = _Record(_begins(emitted), none, none)
        object.__setattr__(self, "surfaces", surfaces)
        object.__setattr__(self, "_loads", loads(len(emitted)))
        found = [self._served(load, plain, surfaces.estimate, (0.0, 0.0, 0.0)) for load in self._loads]
        object.__setattr__(self, "_plain_s", np.array(found))

    @property
    def plain_s(self) -> float:
        """Of the whole record without speculation."""
        return float(self._plain_s[0])

    def seconds(self, steps: SettingSteps, drafting: DraftingCost) -> float:
        """Of the whole record with this setting."""
        return self._served(self._loads[0], _record(steps), self.surfaces.estimate, _ends(drafting)[0])

    def speedup(self, steps: SettingSteps, drafting: DraftingCost) -> Interval:
        """Throughput with this setting / without, and a 95 % interval.

        It holds two errors, added in quadrature on the log as if independent. That of the sample of requests:
        see `jackknife_half`. That of the cost: simulations with both ends of what speculation makes of a step
        (see Surfaces), each with the same end of what drafting takes.
        """
        record = _record(steps)
        ends = self.surfaces.estimate, self.surfaces.low, self.surfaces.high
        best, cheap, dear = zip(ends, _ends(drafting), strict=True)
        found = np.array([self._served(load, record, *best) for load in self._loads])
        gains = np.log(self._plain_s / found)
        gain, sampling = float(gains[0]), jackknife_half(gains[1:])
        below = math.log(self._served(self._loads[0], record, *dear) / found[0])
        above = math.log(found[0] / self._served(self._loads[0], record, *cheap))
        return Interval(
            math.exp(gain),
            math.exp(gain - math.hypot(sampling, max(below, 0.0))),
            math.exp(gain + math.hypot(sampling, max(above, 0.0))),
        )

    def _served(self, load: Counts, record: _Record, surface: Surface, drafting: Drafting) -> float:
        """Seconds until the last request of the load has left."""
        return makespan(
            load,
            self.requests.prompt_tokens,
            record.begins,
            record.drafted,
            record.accepted,
            surface.empty_s,
            surface.cached_s,
            float(self.prefill_s),
            *drafting,
            self.concurrency,
            self.token_budget,
            np.empty((3, self.concurrency), np.int64),
        )


def loads(requests: int) -> tuple[Counts, ...]:
    """Which requests are served, in turn: all; then, for a jackknife, all but each of GROUPS interleaved
    groups. With fewer requests than GROUPS each is a group; a single one leaves nothing to compare."""
    every = np.arange(requests)
    groups = min(GROUPS, requests) if requests > 1 else 0
    return every, *(every[every % groups != group] for group in range(groups))


def jackknife_half(without: NDArray[np.float64]) -> float:
    """Half the 95 % interval of an estimate, from the estimates without each group; 0 for none.

    A jackknife that deletes groups (Quenouille 1956; Tukey 1958; Shao and Tu 1995, chapter 2): the variance
    is (G − 1) / G · Σ (θ_g − mean)², and Student's t has G − 1 degrees of freedom.
    """
    groups = len(without)
    if groups < 2:
        return 0.0
    variance = (groups - 1) / groups * float(((without - without.mean()) ** 2).sum())
    return t_quantile(TAIL, groups - 1) * math.sqrt(variance)


def _ends(drafting: DraftingCost) -> tuple[Drafting, Drafting, Drafting]:
    """Estimate, low and high."""
    costs = drafting.step_s, drafting.drafted_step_s, drafting.token_s
    estimate, low, high = zip(*((float(c.estimate), float(c.low), float(c.high)) for c in costs), strict=True)
    return estimate, low, high


def _record(steps: SettingSteps) -> _Record:
    return _Record(_begins(steps.counts), steps.drafted, steps.accepted)


def _begins(counts: Counts) -> Counts:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
