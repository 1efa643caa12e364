"""A window that is too long for what its last positions are accepted, or too short. See window_costs.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.commands import restart_with
from breakeven.diagnose.causes.priced import price_of
from breakeven.diagnose.causes.window_costs import WindowCosts, position_rates, window_costs
from breakeven.diagnose.evidence import Evidence, Setting
from breakeven.diagnose.ratios import (
    draft_bounds,
    draft_share,
)
from breakeven.diagnose.speeds import BETTER, is_slower
from breakeven.explain.records import Confidence, Finding
from breakeven.units import share

TAIL = 0.05
"""Share of drafts below which a position is all but never accepted: nineteen of twenty tokens verified there
are thrown away."""
NEARLY_ALWAYS = 0.9
"""Share of drafts that are accepted to the end from which the window, and not the drafter, sets the limit."""


def too_long(evidence: Evidence) -> Finding | None:
    """A shorter window costs less per token."""
    return _shorter_by_replay(evidence) or _shorter_by_positions(evidence) or _dead_tail(evidence)


def too_short(evidence: Evidence) -> Finding | None:
    """Nearly every draft is accepted to its end, so that a longer one would give more."""
    rates = position_rates(evidence)
    looping = evidence.replies is not None and evidence.replies.looping
    if not rates or rates[-1] < NEARLY_ALWAYS or len(rates) < (evidence.drafting.k or 1) or looping:
        return None
    said = f"{share(rates[-1])} of drafts are accepted to their last position, {len(rates)}"
    found = _best(_windows(evidence), evidence)
    if found is not None and found.k > len(rates):
        return _window_finding("window_too_short", evidence, found, said)
    price = price_of(evidence)
    if price is None:
        return None if is_slower(evidence) is False else _perhaps_short(said)
    longer = _extended(rates)
    costs = window_costs(evidence, price, rates, longer)
    gain = min(costs.gain(len(longer), f) for f in draft_bounds(evidence))
    if gain < BETTER:
        return None
    return Finding(
        "window_too_short",
        f"The window of {len(rates)} may be too short",
        f"{said}. Were further ones accepted as the last is of the one before, a window of {len(longer)} "
        f"would make a token {gain:.2f} times cheaper by the {price.cost.source} cost of a step",
        "medium",
        *restart_with(evidence, len(longer)),
    )


CAUSES: tuple[Cause, ...] = (too_long, too_short)


@dataclass(frozen=True, slots=True)
class _Better:
    """Another window, and what a token costs now and with it, in plain steps."""

    k: int
    instead_of: int
    now: float
    then: float
    confidence: Confidence
    source: str

    @property
    def gain(self) -> float:
        return self.now / self.then


def _shorter_by_replay(evidence: Evidence) -> Finding | None:
    found = _best(_windows(evidence), evidence)
    replayed = evidence.replayed
    if found is None or replayed is None or found.k >= replayed.as_set.k:
        return None
    rates = position_rates(evidence)
    return _window_finding("window_too_long", evidence, found, _tail_words(rates, found.k) if rates else "")


def _windows(evidence: Evidence) -> tuple[Setting, ...]:
    """Replayed with the n range that is set, and another window."""
    replayed = evidence.replayed
    if replayed is None:
        return ()
    own = replayed.as_set
    alike = (one for one in replayed.others if (one.min_n, one.max_n) == (own.min_n, own.max_n))
    return tuple(one for one in alike if one.k != own.k)


def _best(others: Iterable[Setting], evidence: Evidence) -> _Better | None:
    """The cheapest of the settings, where it is cheaper by BETTER."""
    replayed, cost = evidence.replayed, evidence.cost
    now = None if replayed is None else replayed.as_set.cost_per_token
    priced = [(one.cost_per_token, one.k) for one in others if one.cost_per_token is not None]
    if replayed is None or now is None or not priced or cost is None:
        return None
    then, k = min(priced)
    if now < BETTER * then or then >= 1:
        return None
    sure: Confidence = "high" if cost.source == "measured" else "medium"
    return _Better(k, replayed.as_set.k, now, then, sure, f"replay, {cost.source} cost")


def _shorter_by_positions(evidence: Evidence) -> Finding | None:
    rates, price = position_rates(evidence), price_of(evidence)
    if len(rates) < 2 or price is None or _windows(evidence):
        return None
    costs, f = window_costs(evidence, price, rates), draft_share(evidence)
    if f is None:
        return _shorter_if_drafted(costs)
    k = costs.best(f.estimate)
    now, then = costs.token(costs.window, f.estimate), costs.token(k, f.estimate)
    if min(costs.gain(k, end) for end in (f.low, f.estimate, f.high)) < BETTER or then.estimate >= 1:
        return None
    sure = price.cost.source == "measured" and now.low > then.low and now.high > then.high
    source = f"counted acceptance, {price.cost.source} cost"
    confidence: Confidence = "high" if sure else "medium"
    better = _Better(k, costs.window, now.estimate, then.estimate, confidence, source)
    return _window_finding("window_too_long", evidence, better, _tail_words(rates, k))


def _shorter_if_drafted(costs: WindowCosts) -> Finding | None:
    """Where it is not known how many steps draft: a window matters the less, the fewer do."""
    k = costs.best(1.0)
    if costs.gain(k, 1.0) < BETTER or costs.token(k, 1.0).estimate >= 1:
        return None
    return Finding(
        "window_too_long",
        f"The window of {costs.window} may be too long",
        f"{_tail_words(costs.rates, k)}. Where every step drafts, a window of {k} makes a token "
        f"{costs.gain(k, 1.0):.2f} times cheaper by the {costs.price.cost.source} cost of a step; how many "
        "steps draft is not known",
        "low",
        "breakeven measure --url <url> --prompts <prompts>",
        "See the draft share that it counts: the fewer steps draft, the less the window matters.",
    )


def _extended(rates: tuple[float, ...]) -> tuple[float, ...]:
    """As many positions again, each accepted as often after the one before as the last is."""
    last = rates[-1] / rates[-2] if len(rates) > 1 and rates[-2] else rates[-1]
    return (*rates, *(rates[-1] * min(last, 1.0) ** further for further in range(1, len(rates) + 1)))


def _dead_tail(evidence: Evidence) -> Finding | None:
    """Where no cost of a step is known: positions that are all but never accepted."""
    rates = position_rates(evidence)
    kept = sum(rate >= TAIL for rate in rates)
    if price_of(evidence) is not None or is_slower(evidence) is False or not 0 < kept < len(rates):
        return None
    most = 2 * kept <= len(rates)
    return Finding(
        "window_too_long",
        f"The window of {len(rates)} is longer than what is accepted of it",
        f"{_tail_words(rates, kept)}. What verifying those tokens costs is not known",
        "medium" if most or is_slower(evidence) else "low",
        "breakeven calibrate <url>",
        f"Give its file as --calibration: it tells what a window of {kept} saves in every step.",
    )


def _window_finding(name: str, evidence: Evidence, better: _Better, said: str) -> Finding:
    length, now = "long" if name == "window_too_long" else "short", better.instead_of
    costs = (
        f"A token costs {better.now:.2f} plain steps with the window of {now}, and {better.then:.2f} with "
        f"{better.k} ({better.source}): {better.gain:.2f} times cheaper"
    )
    return Finding(
        name,
        f"The window of {now} is too {length}: {better.k} is better",
        f"{said}. {costs}" if said else costs,
        better.confidence,
        *restart_with(evidence, better.k),
    )


def _perhaps_short(said: str) -> Finding:
    return Finding(
        "window_too_short",
        "The window may be too short",
        f"{said}: the window sets the limit, not the drafter. What longer drafts would cost is not known",
        "low",
        "breakeven calibrate <url>",
        "Give its file as --calibration: it tells what further drafted tokens cost.",
    )


def _tail_words(rates: tuple[float, ...], k: int) -> str:
    """What is accepted beyond a window of k."""
    tail = rates[k:]
    if not tail:
        return ""
    where = f"position {k + 1} is" if len(tail) == 1 else f"positions {k + 1} to {len(rates)} are"
    low, high = share(min(tail)), share(max(tail))
    return f"{where} accepted in {low if low == high else f'{low} to {high}'} of drafts"
