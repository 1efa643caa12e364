"""Costs and records that are easy to reckon with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Source, Step
from breakeven.drafters.registry import make_drafter
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.interval import Interval

NOTHING = Interval(0.0, 0.0, 0.0)
FREE = DraftingCost(NOTHING, NOTHING, NOTHING, "drafting costs nothing")


@dataclass(frozen=True)
class Line:
    """a + b · tokens + kv · cached tokens, in seconds, of which the increments are known to `error`."""

    a: float = 0.010
    b: float = 0.001
    kv: float = 0.0
    error: float = 0.0
    source: Source = "measured"

    def seconds(self, step: Step) -> Interval:
        s = self._at(step)
        return Interval(s, s, s)

    def _at(self, step: Step, error: float = 0.0) -> float:
        cached = step.sequences * step.context_tokens
        return self.a + self.b * step.batch_tokens * (1 + error) + self.kv * cached

    def relative(self, step: Step, base: Step) -> Interval:
        ends = [self._at(step, e) / self._at(base, e) for e in (0, -self.error, self.error)]
        return Interval(ends[0], min(ends), max(ends))

    def parts(self, step: Step) -> Mapping[str, float]:
        return {"flat": self.a, "tokens": self.b * step.batch_tokens}

    def warnings(self, step: Step) -> tuple[str, ...]:
        return ()


def drafting(step: float = 0.0, drafted: float = 0.0, token: float = 0.0) -> DraftingCost:
    return DraftingCost(*(Interval(s, s, s) for s in (step, drafted, token)), "given")


def record(
    steps: Sequence[Sequence[tuple[int, int]]], categories: Sequence[str] = (), prompt: int = 10
) -> tuple[Requests, SettingSteps]:
    """Requests whose steps are (drafted, accepted), each after one token of the prefill."""
    outputs = [1 + sum(accepted + 1 for _, accepted in one) for one in steps]
    names = list(categories) or ["all"] * len(steps)
    known = tuple(dict.fromkeys(names))
    flat = [pair for one in steps for pair in one]
    return (
        Requests(
            np.full(len(steps), prompt, np.int64),
            np.array(outputs, np.int64),
            np.array([known.index(name) for name in names], np.int64),
            known,
            1,
        ),
        SettingSteps(
            make_drafter("vllm-ngram", {"k": 8}),
            np.array([len(one) for one in steps], np.int64),
            np.array([drafted for drafted, _ in flat], np.int32),
            np.array([accepted for _, accepted in flat], np.int32),
        ),
    )
