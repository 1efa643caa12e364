"""Acceptance below what a step takes: by the cost of verifying, or by the two speeds alone."""

from __future__ import annotations

from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.priced import Price, price_of
from breakeven.diagnose.causes.window_costs import position_rates, window_costs
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import (
    GOOD,
    acceptance_rate,
    draft_bounds,
    draft_share,
    draft_tokens,
    has_enough_drafts,
    most_tokens,
    step_ratio,
    tokens_per_step,
)
from breakeven.diagnose.speeds import is_slower
from breakeven.explain.records import Finding
from breakeven.interval import Interval
from breakeven.units import between, share, shares


def below_break_even(evidence: Evidence) -> Finding | None:
    """Fewer tokens are accepted than pay for a step, at every window up to the one that is set."""
    if evidence.explanation is not None:
        return None
    price = price_of(evidence)
    return _gain_below_cost(evidence) if price is None else _dear_by_cost(evidence, price)


CAUSES: tuple[Cause, ...] = (below_break_even,)


def _dear_by_cost(evidence: Evidence, price: Price) -> Finding | None:
    """No window of one token or more makes a token cheaper than a plain step, whatever share drafts."""
    rate, drafted, known = acceptance_rate(evidence), draft_tokens(evidence), draft_share(evidence)
    ends = [f for f in draft_bounds(evidence) if f > 0]
    if rate is None or not drafted or not ends or not has_enough_drafts(evidence):
        return None
    needed = [price.needed_rate(f, drafted) for f in ends]
    least = min(needed, key=lambda one: one.estimate)
    rates = position_rates(evidence)
    costs = window_costs(evidence, price, rates)
    pays = any(costs.token(k, f).estimate < 1 for k in range(1, len(rates) + 1) for f in ends)
    if rate.high >= least.estimate or pays or is_slower(evidence) is False:
        return None
    sure = price.cost.source == "measured" and all(rate.high < one.low for one in needed)
    full = price.mean_step(1.0, drafted)
    where = "" if known is not None else " where every step drafts"
    return Finding(
        "verification_too_dear",
        "Verifying costs more than the accepted tokens save",
        f"verifying {drafted:.3g} tokens takes {between(full.low, full.high)} plain steps with drafting by "
        f"the {price.cost.source} cost: a draft pays from an acceptance rate of {share(least.estimate)}"
        f"{where}; {shares(rate.low, rate.high)} were accepted"
        + (", and no shorter window pays" if rates else ""),
        "high" if sure else "medium",
        "breakeven replay <baseline-run> --sweep",
        "See whether another drafter or n range is accepted more often; else serve without speculation.",
    )


def _gain_below_cost(evidence: Evidence) -> Finding | None:
    """By the two speeds alone: a step takes longer than its tokens are worth, for a reason not known."""
    rate, steps, emitted = acceptance_rate(evidence), step_ratio(evidence), tokens_per_step(evidence)
    verified = most_tokens(evidence)
    if not is_slower(evidence) or rate is None or steps is None or emitted is None or verified is None:
        return None
    if rate.high >= GOOD or steps.low > verified or verified <= 1:
        return None
    return Finding(
        "step_gain_below_cost",
        "A step costs more than it gives",
        f"a step takes {between(steps.low, steps.high)} plain steps and emits "
        f"{between(emitted.low, emitted.high)} tokens, with {shares(rate.low, rate.high)} of drafted ones "
        f"accepted{_needed_words(evidence, steps)}. Whether by verifying or by something flat is not known",
        "low",
        "breakeven calibrate <url>",
        "Give its file as --calibration: it tells what of a step is verifying.",
    )


def _needed_words(evidence: Evidence, steps: Interval) -> str:
    """Acceptance at which such a step would pay: only where it is known how many steps draft."""
    f, drafted = draft_share(evidence), draft_tokens(evidence)
    if f is None or not drafted or f.low <= 0:
        return ""
    needed = (steps.estimate - 1) / (f.estimate * drafted)
    return f"; at that cost drafts pay from an acceptance rate of about {share(needed)}"
