"""Replaying: what the configured drafter gives on a run's own tokens, and what its other settings would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from breakeven.acceptance.record import Acceptance
from breakeven.cost.drafting import drafting_cost
from breakeven.cost.step import StepCost
from breakeven.diagnose.evidence import Drafting, Replayed, Setting
from breakeven.drafters.registry import make_drafter
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.forecast.decode import MOST_STEP_TOKENS, relative_cost, step_costs
from breakeven.replay.drafter_of import drafter_of
from breakeven.replay.grid import Setting as DrafterSetting
from breakeven.replay.grid import default_grid
from breakeven.replay.run import as_used, replay_source
from breakeven.replay.sources import Source, open_source
from breakeven.trace.run import Run

KS = (1, 2, 3, 5, 8, 12)
"""Other windows, with the n range that is set."""
N_RANGES = ((1, 3), (2, 3), (2, 4), (3, 5))
"""Other n ranges, with the window that is set."""


def replayed(
    run: Run,
    drafting: Drafting,
    cost: StepCost | None = None,
    sequences: float | None = 1,
    context_tokens: float = 0,
) -> Replayed | None:
    """What the drafter should have given on the tokens of `run`, the baseline's or the server's own.

    A token is priced where both the `cost` and how many `sequences` a step has are known.

    None for a drafter that cannot be replayed: a learned one, or of an engine that the run does not name.
    Raises UsageError, which says what to type, for a run without token ids, or settings that the drafter does
    not take.
    """
    engine = run.meta.server.engine
    config = SpeculationConfig(drafting.method, drafting.k, drafting.min_n, drafting.max_n)
    found = None if engine is None else drafter_of(engine, config)
    if found is None:
        return None
    source = open_source(run.path)
    priced = Priced(cost, engine, drafting.method, sequences, context_tokens)
    as_set = _replay(source, found, priced)
    return Replayed(as_set, tuple(_replay(source, other, priced) for other in _others(found)))


class Priced:
    """The cost of a token by the steps of a replay."""

    def __init__(
        self,
        cost: StepCost | None,
        engine: str | None,
        method: str,
        sequences: float | None,
        context_tokens: float,
    ) -> None:
        self._cost = cost
        self._drafting = drafting_cost(engine, method)
        self._sequences = sequences
        self._context_tokens = context_tokens

    def per_token(self, acceptance: Acceptance) -> float | None:
        """Mean step / plain step / tokens per step; None where that is not known, or nothing was emitted.

        A step's cost is a mean field over what the other sequences draft: see forecast/decode.py.
        """
        per_step, (drafted, _, steps) = acceptance.tokens_per_step, acceptance.histogram.T
        if self._cost is None or self._sequences is None or not per_step:
            return None
        share = np.bincount(drafted, steps) / steps.sum()
        sequences = max(round(self._sequences), 1)
        if sequences * len(share) > MOST_STEP_TOKENS:
            return None
        relative = relative_cost(self._cost, sequences, len(share) - 1, self._context_tokens)
        return float(share @ step_costs(relative, self._drafting, share)[0]) / per_step


def _replay(source: Source, setting: DrafterSetting, priced: Priced) -> Setting:
    """On one core: each of the few replays is short, and workers would take longer to start."""
    name, settings = setting
    acceptance = replay_source(source, name, settings, jobs=1).total
    used = as_used(make_drafter(name, settings))
    k, n = used.get("k"), used.get("n")
    if not isinstance(k, int):
        k = int(acceptance.histogram[:, 0].max(initial=1))
    return Setting(k, used.get("min_n", n), used.get("max_n", n), acceptance, priced.per_token(acceptance))


def _others(found: DrafterSetting) -> Iterator[DrafterSetting]:
    """The same drafter with another window, or another n range; each once, and none that drafts nothing."""
    name, settings = found
    seen = [as_used(make_drafter(name, settings))]
    for other in _changed(name, settings):
        try:
            drafter = make_drafter(name, other)
        except UsageError:  # a window below the shortest draft that is set, or the like
            continue
        if drafter.settings.can_draft() and (used := as_used(drafter)) not in seen:
            seen.append(used)
            yield name, other


def _changed(name: str, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Of what default_grid tries, only the window, and then only the n range."""
    for _, one in default_grid([name], KS, N_RANGES[:1]):
        if "k" in one:
            yield {**settings, "k": one["k"]}
    for _, one in default_grid([name], KS, N_RANGES):
        ranges = {key: value for key, value in one.items() if key in ("min_n", "max_n", "n")}
        if ranges:
            yield {**settings, **ranges}
