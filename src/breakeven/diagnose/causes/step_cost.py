"""A step that costs more than its tokens account for, and a batch that has no room left for drafts."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.cost.coverage import distinct_experts
from breakeven.cost.modelled import INCREMENT_ERROR
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.left_over import LEAST_LEFT, LeftOver, left_overs
from breakeven.diagnose.causes.priced import Bounds, Price, price_of
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import (
    GOOD,
    acceptance_rate,
    draft_bounds,
    draft_share,
    draft_tokens,
    most_tokens,
    step_ratio,
    tokens_per_step,
)
from breakeven.diagnose.speeds import is_slower, speedup
from breakeven.explain.records import Confidence, Finding
from breakeven.units import between, ratio, share, shares

STEEP = 0.5
"""Growth of a step whose sequences have two tokens each instead of one: 0 where they are free, 1 where a step
takes as long for each. From here on a token more costs over half of that, and the batch is called
compute-bound."""
MOST_COVERED = 0.9
"""Of all experts, below which more tokens still wake more of them, so that a steep curve may be theirs."""


def step_cost(evidence: Evidence) -> Finding | None:
    """Steps that take longer than the model, the calibration, or common sense allows."""
    if evidence.explanation is not None:
        return _beyond_explained(evidence)
    return _beyond_speeds(evidence) or _beyond_curve(evidence)


def _beyond_explained(evidence: Evidence) -> Finding | None:
    """By the waterfall: what is left of a step once verifying and drafting are taken at their dearest."""
    sure = [one for one in left_overs(evidence) if one.is_sure]
    if not sure:
        return None
    worst = max(sure, key=lambda one: one.least_s / one.plain_s)
    case, kind = evidence.case, "modelled"
    if case is not None and case.measured is not None:
        kind = "measured"
    holds = kind == "measured" or any(one.is_sure for one in left_overs(evidence, INCREMENT_ERROR))
    names = ", ".join(_left_words(one) for one in sure)
    others = [one for one in left_overs(evidence) if not one.is_sure]
    return _finding(
        f"A step takes longer than its {kind} cost",
        f"beyond its plain step, verifying ({kind}) and, unlike what is unexplained above, drafting too, all "
        f"at their dearest, a step took at least {names}{_other_words(others)}. Neither drafted tokens nor "
        "their acceptance account for that",
        "high" if holds else "medium",
        (worst.least_s, worst.most_s),
    )


def _other_words(others: Sequence[LeftOver]) -> str:
    """Those that are not counted, as too little is left of them beyond doubt."""
    if not others:
        return ""
    names = ", ".join(one.name for one in others)
    return f"; {names}: less than {share(LEAST_LEFT)} of a plain step, which is not counted"


def _left_words(one: LeftOver) -> str:
    return f"{one.least_s * 1e3:.1f} ms ({one.name}, {share(one.least_s / one.plain_s)} of a plain step)"


def _beyond_speeds(evidence: Evidence) -> Finding | None:
    """By the two speeds and what was accepted, where no cost of a step is known."""
    steps, emitted, verified = step_ratio(evidence), tokens_per_step(evidence), most_tokens(evidence)
    gain, rate = speedup(evidence), acceptance_rate(evidence)
    if not is_slower(evidence) or steps is None or emitted is None or verified is None:
        return None
    price = price_of(evidence)
    expected = None if price is None else _expected(evidence, price)
    above_curve = expected is not None and steps.low > (1 + LEAST_LEFT) * expected[1]
    is_beyond = steps.low > verified
    if not (above_curve or is_beyond or (price is None and rate is not None and rate.low >= GOOD)):
        return None
    said = f"at {ratio(gain)} the baseline's speed and {between(emitted.low, emitted.high)} tokens a step"
    accepted = "" if rate is None else f" (an acceptance rate of {shares(rate.low, rate.high)})"
    one_by_one = (
        f". Even one after another, as no engine runs them, its {verified:.2g} tokens would take "
        f"{verified:.2g} plain steps: the cause is the step, not the acceptance"
        if is_beyond
        else ""
    )
    curve = "" if expected is None else f"; by the {_source(evidence)} cost: {between(*expected)}"
    return _finding(
        f"A step takes {between(steps.low, steps.high)} plain steps",
        f"{said}{accepted}, a step takes {between(steps.low, steps.high)} plain steps{curve}{one_by_one}",
        "high" if is_beyond or above_curve else "medium",
    )


def _beyond_curve(evidence: Evidence) -> Finding | None:
    """By the server's own count of its steps' time, beside what is known of their cost."""
    price, gaps = price_of(evidence), evidence.traffic.load.token_s if evidence.traffic is not None else None
    if price is None or gaps is None or not gaps[1]:
        return None
    seconds, expected, plain = gaps[0] / gaps[1], _expected(evidence, price), price.plain_s
    least_s, most_s = expected[0] * plain.low, expected[1] * plain.high
    if seconds <= (1 + LEAST_LEFT) * most_s:
        return None
    return _finding(
        f"A step takes longer than its {_source(evidence)} cost",
        f"the server counts {seconds * 1e3:.1f} ms a step, prefills between them included; by the "
        f"{_source(evidence)} cost it is {between(least_s * 1e3, most_s * 1e3)} ms",
        "medium",
        (seconds - most_s, seconds - least_s),
    )


def _finding(
    title: str, evidence: str, confidence: Confidence, step_s: tuple[float, float] | None = None
) -> Finding:
    return Finding(
        "step_cost",
        title,
        evidence,
        confidence,
        "grep -iE 'async|cudagraph|attention|backend|model runner' <baseline-log> <candidate-log>",
        "See what the engine does otherwise once it speculates: each difference can cost time at every step.",
        step_s,
    )


def _expected(evidence: Evidence, price: Price) -> Bounds:
    """Plain steps that a step should take."""
    return price.between(draft_bounds(evidence), draft_tokens(evidence) or 0.0)


def compute_bound(evidence: Evidence) -> Finding | None:
    """So many sequences in a step that a further token costs more than half of what one of them does."""
    price, rate, drafted = price_of(evidence), acceptance_rate(evidence), draft_tokens(evidence)
    if price is None or rate is None or not drafted or price.sequences < 2:
        return None
    growth, f = price.twice_the_tokens, draft_share(evidence)
    share_taken = 1.0 if f is None or not f.estimate else f.estimate
    needed, alone = (one.needed_rate(share_taken, drafted) for one in (price, price.for_one_sequence()))
    if growth.estimate - 1 < STEEP or rate.high >= needed.estimate or not _is_covered(evidence, price):
        return None
    sure = price.cost.source == "measured" and growth.low - 1 >= STEEP and rate.high < needed.low
    full = price.mean_step(1.0, drafted)
    return Finding(
        "compute_bound",
        f"{price.sequences} sequences leave no room for drafts",
        f"twice the tokens make a step of {price.sequences} sequences {ratio(growth.estimate)} as long; "
        f"verifying {drafted:.3g} drafted tokens of each takes {between(full.low, full.high)} plain steps "
        f"with drafting. Where {_all(share_taken)} drafts, that pays from an acceptance rate of "
        f"{share(needed.estimate)}, and {shares(rate.low, rate.high)} were accepted. One sequence alone "
        f"would need {share(alone.estimate)}",
        "high" if sure and f is not None else "medium",
        "breakeven forecast <baseline-run> --calibration <calibration>",
        "See up to which concurrency drafting pays; above it, serve without, or with a shorter window.",
    )


def _all(share_taken: float) -> str:
    return "every step" if share_taken == 1 else f"each sequence in {share(share_taken)} of its steps"


CAUSES: tuple[Cause, ...] = (compute_bound, step_cost)


def _is_covered(evidence: Evidence, price: Price) -> bool:
    """Whether a steep curve is not of experts that more tokens wake: nearly all are awake, or there are none,
    or that is not known."""
    geometry = evidence.case.geometry if evidence.case is not None else None
    if geometry is None or geometry.experts is None:
        return True
    return distinct_experts(geometry.experts, 1, price.sequences) >= MOST_COVERED * geometry.experts.count


def _source(evidence: Evidence) -> str:
    return "known" if evidence.cost is None else evidence.cost.source
