"""Decode speedup: what a sequence's steps take among others that draft as they come, against plain steps.

Of c sequences in a batch each is at a step of its own. The others' drafts are taken as independent draws from
all steps of the record, so that a step of one sequence that drafts d tokens carries c + d + S tokens, S the
sum of c − 1 draws, and takes g(d) = E[T(c + d + S)] / T(c) plain steps of the same batch, with what drafting
itself costs. A request of n_d steps with d drafted tokens that emits e tokens is then e / Σ n_d · g(d) times
as fast: exact for one sequence, a mean field for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Step, StepCost
from breakeven.forecast.collected import SettingSteps
from breakeven.interval import Interval

Floats = NDArray[np.float64]

PER_DOUBLING = 4
"""Means of tokens per sequence at which the cost is asked, beside the whole numbers below FINE: so a curve
of up to 256 sequences takes some twenty values."""
FINE = 9
MOST_STEP_TOKENS = 65_536
"""Of a step whose cost is asked: no engine is given a larger batch, and a server that says so lies."""
MOST_DRAFT_TOKENS = 1000
"""Likewise, of one draft: as many as --k takes."""


@dataclass(frozen=True, slots=True)
class Relative:
    """Steps of `sequences` sequences in plain steps of as many."""

    sequences: int
    plain_s: Interval
    """Seconds of the plain step."""
    by_tokens: Floats
    """Rows: estimate, low, high. Columns: tokens of the batch beyond one for each sequence. Shape (3, n)."""


def relative_cost(cost: StepCost, sequences: int, most_drafted: int, context_tokens: float) -> Relative:
    """The cost of every step whose sequences draft up to `most_drafted` tokens each.

    It is asked at some means of tokens per sequence, and linear between them. Raises what the cost raises.
    """
    base = Step(1, sequences, context_tokens)
    nodes = _nodes(sequences, most_drafted)
    found = [cost.relative(Step(1 + n / sequences, sequences, context_tokens), base) for n in nodes]
    every = np.arange(sequences * most_drafted + 1)
    columns = ([one.estimate for one in found], [one.low for one in found], [one.high for one in found])
    rows = [np.interp(every, nodes, column) for column in columns]
    return Relative(sequences, cost.seconds(base), np.array(rows))


def _nodes(sequences: int, most_drafted: int) -> Floats:
    """Drafted tokens of the whole batch."""
    whole = np.arange(min(most_drafted, FINE) + 1)
    halves = whole[:-1] + 0.5
    doublings = np.geomspace(FINE, max(most_drafted, FINE), PER_DOUBLING * 2)
    means = np.concatenate([whole, halves, doublings, [0.25, most_drafted]])
    drafted = np.unique(np.round(means * sequences))
    kept: Floats = drafted[drafted <= sequences * most_drafted].astype(np.float64)
    return kept


@dataclass(frozen=True, slots=True)
class Mix:
    """How often a record's steps draft so many tokens, in all and by request."""

    counts: NDArray[np.int64]
    """Steps of each request by drafted tokens; shape (requests, most drafted + 1)."""

    @property
    def share(self) -> Floats:
        """Of all steps, by drafted tokens; shape (most drafted + 1,)."""
        total = self.counts.sum(axis=0)
        shares: Floats = total / max(int(total.sum()), 1)
        return shares


def mix_of(steps: SettingSteps, most_drafted: int) -> Mix:
    """The steps of a setting that never drafts more than `most_drafted` tokens."""
    request = np.repeat(np.arange(len(steps.counts)), steps.counts)
    width = most_drafted + 1
    keys = request * width + steps.drafted
    return Mix(np.bincount(keys, minlength=len(steps.counts) * width).reshape(-1, width))


def step_costs(relative: Relative, drafting: DraftingCost, share: Floats) -> Floats:
    """g(d): a step of one sequence that drafts d tokens, in plain steps; shape (3, len(share)).

    Rows are the estimate, and the low and high ends of both costs. `share` is how the others draft, shape
    (most drafted + 1,).
    """
    others = summed(share, relative.sequences - 1)
    drafted = np.arange(len(share))
    mean = [
        np.array([others @ row[d : d + len(others)] for d in drafted.tolist()]) for row in relative.by_tokens
    ]
    return np.array(mean) + _drafting(relative, drafting, share)


def mean_step(relative: Relative, drafting: DraftingCost, draft_share: float, drafted: float) -> Interval:
    """A mean step in plain steps, where each sequence drafts in `draft_share` of its steps by itself.

    A draft has `drafted` tokens in the mean, one of the two whole numbers beside it. `relative` must hold
    steps of as many.
    """
    share = np.zeros(ceil(drafted) + 1)
    share[0] = 1 - draft_share
    fewer = floor(drafted)
    share[fewer] += draft_share * (fewer + 1 - drafted)
    if drafted > fewer:
        share[fewer + 1] += draft_share * (drafted - fewer)
    return Interval(*(step_costs(relative, drafting, share) @ share).tolist())


def idle_step(relative: Relative, drafting: DraftingCost) -> float:
    """A step in which speculation is on and no sequence drafts, in plain steps."""
    return 1 + drafting.step_s.estimate / relative.plain_s.estimate


def summed(share: Floats, draws: int) -> Floats:
    """The distribution of a sum of so many independent draws; shape (draws · (len(share) − 1) + 1,)."""
    length = draws * (len(share) - 1) + 1
    size = 1 << (length - 1).bit_length()
    power = np.fft.irfft(np.fft.rfft(share, size) ** draws, size)[:length] if size > 1 else np.ones(1)
    positive = np.maximum(power, 0.0)
    distribution: Floats = positive / positive.sum()
    return distribution


def _drafting(relative: Relative, cost: DraftingCost, share: Floats) -> Floats:
    """What drafting adds, in plain steps; shape (3, len(share))."""
    none_below = np.cumsum(share) ** (relative.sequences - 1)
    d = np.arange(len(share))
    drafts = np.where(d > 0, 1.0, 1 - none_below[0])
    longest = np.array([own + float((1 - none_below[own:-1]).sum()) for own in d.tolist()])
    plain = relative.plain_s
    ends = (
        (cost.step_s.estimate, cost.drafted_step_s.estimate, cost.token_s.estimate, plain.estimate),
        (cost.step_s.low, cost.drafted_step_s.low, cost.token_s.low, plain.high),
        (cost.step_s.high, cost.drafted_step_s.high, cost.token_s.high, plain.low),
    )
    return np.array(
        [(step + drafts * drafted + longest * token) / over for step, drafted, token, over in ends]
    )
