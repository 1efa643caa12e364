"""WindowCosts: what a token costs at each window, by the positions that were counted.

With p_j the share of drafts that accept position j or more, f the share of steps that draft, and r the plain
steps that a mean step takes with drafts of so many tokens (see mean_step of forecast/decode.py; of one
sequence 1 + d + f · V), a token costs

    r / (1 + f · Σ p_j)   plain steps,

so that position j pays where p_j exceeds what it adds to the cost, in units of the cost per token so far. It
is evaluated at every window rather than at the margin: r has steps of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.acceptance.counters import LEAST_DRAFTS
from breakeven.diagnose.causes.priced import Price
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import draft_tokens
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class WindowCosts:
    """In plain steps."""

    price: Price
    rates: tuple[float, ...]
    """p_j, up to the longest window."""
    drafted: float
    """Mean tokens of a draft at the window that is set, …"""
    window: int
    """… which is this."""

    def token(self, k: int, f: float) -> Interval:
        """Of drafts shorter than the window a shorter one cuts off an unknown part: the least is taken."""
        step = self.price.mean_step(f, k if k > self.window else min(self.drafted, k))
        tokens = 1 + f * sum(self.rates[:k])
        return Interval(step.estimate / tokens, step.low / tokens, step.high / tokens)

    def gain(self, k: int, f: float) -> float:
        """How many times cheaper a token is at a window of k than at the one that is set."""
        return self.token(self.window, f).estimate / self.token(k, f).estimate

    def best(self, f: float) -> int:
        """The cheapest window up to the one that is set."""
        return min(range(1, self.window + 1), key=lambda k: self.token(k, f).estimate)


def window_costs(
    evidence: Evidence, price: Price, rates: tuple[float, ...], longest: tuple[float, ...] = ()
) -> WindowCosts:
    """By the positions counted; `longest` has further ones, as assumed."""
    return WindowCosts(price, longest or rates, draft_tokens(evidence) or len(rates), len(rates))


def position_rates(evidence: Evidence) -> tuple[float, ...]:
    """p_j up to the window, shares of drafts: as counted, else as replayed; none where too few are known."""
    replayed = evidence.replayed
    sources = (evidence.counters, None if replayed is None else replayed.as_set.acceptance.counters)
    for counts in sources:
        if counts is not None and counts.accepted_per_position and (counts.drafts or 0) >= LEAST_DRAFTS:
            rates = (min(accepted / (counts.drafts or 1), 1.0) for accepted in counts.accepted_per_position)
            found = tuple(rates)
            return (*found, *[0.0] * ((evidence.drafting.k or 0) - len(found)))
    return ()
