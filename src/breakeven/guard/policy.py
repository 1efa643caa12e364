"""Policy: which draft tokens each step of a batch verifies, so that they gain time and can cost little.

Times are in plain steps of the same batch. With c sequences, n draft tokens take (T(c + n) − T(c)) / T(c)
more, and every sequence is delayed by it. Draft token j of a request is accepted with a chance S_j that falls
with j, so the n likeliest tokens of a batch are the begins of its drafts. Of all n the policy takes the one
with most

    Σ S − ρ · c · (T(c + n) − T(c)) / T(c)

ρ being the tokens per plain step that each sequence achieves: what a delay costs is the tokens not made
meanwhile (Dinkelbach 1967: with the rate that is achieved, this maximises the rate). T may have any shape
that does not fall.

Each request has a ledger: tokens emitted − plain steps that its steps took. The waste of a step whose drafts
all fail must fit into what every request of the batch can still lose, others' drafts included. That bounds
the loss for certain, as far as T is true; it does not depend on any chance.

It learns from each step, drafted or plain: the candidate draft is held against the tokens that came. So
nothing is spent on trials, and the counts do not depend on what was decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from breakeven.guard import _kernels as kernels
from breakeven.guard.charge import Charge
from breakeven.guard.match_index import Match
from breakeven.guard.reasons import Reason
from breakeven.guard.settings import GuardSettings
from breakeven.guard.survival import Survival
from breakeven.guard.told_steps import MOST_TOKENS

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

UNKNOWN: Floats = np.zeros(0)
ROOM = 64
"""Requests that the arrays hold at first."""

RATE_WEIGHT = 16.0
"""Plain steps at one token each that a request's rate begins with."""
PRIOR_WEIGHT = 8.0
"""Trials that the prior counts as, for each length of match."""
OWN_WEIGHT = 64.0
"""Hits, and misses, as expected that a request's own odds begin with."""
OWN_MEMORY = 0.99
"""What is left of a request's own trials at each further one.

These four were chosen on every other request of two records (GSM8K and ShareGPT, outputs of Llama-3.1-8B) at
the five step costs of benchmarks/guard.py. None of them matters much: see docs/guard.md."""


class StepTimes(Protocol):
    """What a policy asks of a cost: LiveCost learns it, KnownTimes has it."""

    def seconds(self, most: int, sequences: int) -> Floats | None:
        """Seconds of a step of n = 0 … `most` tokens that decodes so many sequences, shape (most + 1,).

        Entry `sequences` is the plain step, and it never falls from there on. None: not known.
        """

    def probe(self, sequences: int, most: int) -> int:
        """Draft tokens, of `most` in the batch, to verify only to learn what that takes; 0: none is due."""


class Decision(NamedTuple):
    """Of one step, for each request in the order given."""

    ks: tuple[int, ...]
    """Draft tokens to verify."""
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """Of all steps so far, in tokens unless said otherwise."""

    ledger: float
    """Plain steps saved, over all requests; below 0: lost."""
    reasons: Mapping[Reason, int]
    """Decisions by reason."""
    decisions: int
    """One for each request and step."""
    drafted: int
    accepted: int
    """Of the drafted."""
    suppressed: int
    """Of the candidates: not drafted."""
    shadow_scored: int
    """Of the candidates, drafted or not: held against the token that came."""
    shadow_accepted: int
    """Of these: that token."""


class RequestState:
    """What a policy knows of one request: made by its `begin`, given back by its `end`."""

    __slots__ = ("draft", "slot")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.draft: list[int] = []
        """The candidate of the step that was decided."""


class Policy:
    """Decides for one server. No clock, no threads; memory grows with the requests of a batch only."""

    def __init__(self, settings: GuardSettings, times: StepTimes, survival: Survival | None = None) -> None:
        """`survival`: what is known of drafts, and learned on; None begins without."""
        self.survival = Survival() if survival is None else survival
        self._times = times
        self._most = settings.most_tokens
        self._knobs = knobs_of(settings)
        self._rows: Floats = np.zeros((ROOM, kernels.COLUMNS))
        self._free = list(range(ROOM))
        self._totals = new_totals()
        self._saved = 0.0
        self._charge = Charge()
        self._decided: tuple[int, float] | None = None
        """Of the last step, if it drafted: its requests, and the seconds of a plain one."""

    def begin(self) -> RequestState:
        """A request begins."""
        if not self._free:
            room = len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros((room, kernels.COLUMNS))])
            self._free.extend(range(room, 2 * room))
        slot = self._free.pop()
        self._rows[slot] = 0.0
        self._rows[slot, kernels.COST] = 1.0
        return RequestState(slot)

    def end(self, state: RequestState) -> None:
        """It ended; the state is not to be used again."""
        self._free.append(state.slot)

    def decide(self, states: Sequence[RequestState], matches: Sequence[Match]) -> Decision:
        """Which begin of its draft each request of the batch has verified.

        `matches`: what the end of each context was found to repeat; of a draft most_tokens are looked at.
        """
        c, candidates, rows = len(states), 0, self._rows
        step = np.empty((3, c), np.int64)
        for i, state in enumerate(states):
            length, period, draft = matches[i]
            state.draft = draft[: self._most].tolist() if length > 0 else []
            step[kernels.SLOT, i] = slot = state.slot
            rows[slot, kernels.LENGTH] = length
            rows[slot, kernels.PERIOD] = period
            rows[slot, kernels.AVAILABLE] = available = len(state.draft)
            candidates += available
        seconds = self._seconds(c, candidates)
        drafted, bearable = kernels.decide_batch(
            rows, step, seconds, self.survival.counts, self._knobs, self._totals
        )
        if drafted == 0 < bearable and (probe := self._times.probe(c, bearable)) > 0:
            drafted = self._probe(min(probe, bearable), step, seconds)
        self._decided = (c, float(seconds[c])) if drafted > 0 else None
        _, ks, why = step.tolist()
        return Decision(tuple(ks), tuple(map(REASONS.__getitem__, why)))

    def observe(
        self, states: Sequence[RequestState], emitted: Sequence[Int32s], took_s: float | None = None
    ) -> None:
        """The tokens that requests of the step just decided got by it: accepted drafts and one more.

        A request that is left out keeps its account as it was. `took_s`: seconds of the step; None where it
        was not timed, or other work was in it, and what was believed of it is charged.
        """
        step = np.empty((3, len(states)), np.int64)
        for i, state in enumerate(states):
            step[kernels.SLOT, i] = state.slot
            step[kernels.EMITTED, i] = len(emitted[i])
            step[kernels.AGREED, i] = agreed_tokens(state.draft, emitted[i])
            state.draft = []
        self._recharge(step[kernels.SLOT], took_s)
        self._saved += kernels.credit_batch(self._rows, step, self.survival.counts, self._knobs, self._totals)

    def rest(self, reason: Reason, requests: int) -> None:
        """Count a step of so many requests for which nothing is decided, and why."""
        self._totals[kernels.DECISIONS] += requests
        self._totals[kernels.REASONS + reason] += requests

    def saved(self, state: RequestState) -> float:
        """Plain steps that the request has saved so far; below 0: lost."""
        return float(self._rows[state.slot, kernels.SAVED])

    @property
    def counters(self) -> Counters:
        """As they are now."""
        totals: list[int] = self._totals.tolist()
        reasons = {reason: totals[kernels.REASONS + reason] for reason in Reason}
        return Counters(self._saved, reasons, *totals[: kernels.REASONS])

    def _seconds(self, c: int, drafted: int) -> Floats:
        """As the loops take it."""
        if drafted == 0:
            return UNKNOWN
        most = c + drafted
        seconds = self._times.seconds(most if most <= MOST_TOKENS else max(MOST_TOKENS, c), c)
        return UNKNOWN if seconds is None else seconds

    def _recharge(self, slots: Int64s, took_s: float | None) -> None:
        """Charge the step that was decided with the time that it took, if it was run as decided."""
        decided, self._decided = self._decided, None
        if decided is None or took_s is None or not 0 < took_s < math.inf or decided[0] != len(slots):
            return
        believed = float(self._rows[slots[0], kernels.COST])
        self._rows[slots, kernels.COST] = self._charge.of(believed, took_s / decided[1])

    def _probe(self, tokens: int, step: Int64s, seconds: Floats) -> int:
        """Have so many tokens verified of the drafts with the longest matches; returns them."""
        slots, ks, why = step
        c, left = len(slots), tokens
        for i in np.argsort(-self._rows[slots, kernels.LENGTH], kind="stable").tolist():
            ks[i] = min(left, int(self._rows[slots[i], kernels.AVAILABLE]))
            left -= int(ks[i])
            if ks[i] > 0:
                self._totals[kernels.REASONS + why[i]] -= 1
                self._totals[kernels.REASONS + Reason.PROBE] += 1
                why[i] = Reason.PROBE
        self._rows[slots, kernels.DRAFTED] = ks
        self._rows[slots, kernels.COST] = seconds[c + tokens] / seconds[c]
        return tokens


REASONS = tuple(Reason)


def agreed_tokens(draft: Sequence[int], tokens: Int32s) -> int:
    """How many of the tokens, from the first on, are those of the draft."""
    n = 0
    for ours, theirs in zip(draft, tokens.tolist(), strict=False):
        if ours != theirs:
            break
        n += 1
    return n


def knobs_of(settings: GuardSettings) -> Floats:
    """What the loops are told, by their names of it."""
    knobs = np.zeros(6)
    knobs[kernels.SPENDING] = settings.spending
    knobs[kernels.ALLOWANCE] = settings.allowance_steps
    knobs[kernels.RATE_WEIGHT] = RATE_WEIGHT
    knobs[kernels.PRIOR_WEIGHT] = PRIOR_WEIGHT
    knobs[kernels.OWN_WEIGHT] = OWN_WEIGHT
    knobs[kernels.OWN_MEMORY] = OWN_MEMORY
    return knobs


def new_totals() -> Int64s:
    """What the loops count, all 0."""
    return np.zeros(kernels.REASONS + len(Reason), np.int64)
