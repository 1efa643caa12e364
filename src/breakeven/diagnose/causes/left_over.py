"""LeftOver: what of a step nothing accounts for, and whether steps take too long at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from breakeven.cost.drafting import DraftingCost, drafting_cost
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import is_head, most_tokens, step_ratio
from breakeven.diagnose.speeds import is_slower
from breakeven.explain.case import Case
from breakeven.explain.explained import ANY, left_over
from breakeven.explain.records import Explained

LEAST_LEFT = 0.1
"""Of a plain step, that is left beyond all doubt of its cost before the engine is blamed: where both were
measured, a step that verifies took up to 7 % longer than one of as many sequences."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What a step of one observation took beyond its plain step, verifying, and drafting."""

    name: str
    plain_s: float
    least_s: float
    """With the dearest verifying and drafting that are possible."""
    most_s: float

    @property
    def is_sure(self) -> bool:
        return self.least_s >= LEAST_LEFT * self.plain_s


def left_overs(evidence: Evidence, doubt: float = 0.0) -> tuple[LeftOver, ...]:
    """Of each observation; none without an explanation. `doubt` makes verifying dearer, by this share."""
    case, explanation = evidence.case, evidence.explanation
    if case is None or explanation is None or explanation.refused or case.refused:
        return ()
    cost = drafting_cost(case.engine, case.method)
    return tuple(_left_over(case, one, cost, doubt) for one in explanation.explained)


def _left_over(case: Case, one: Explained, cost: DraftingCost, doubt: float) -> LeftOver:
    """As explain.unexplained, with what drafting takes at most, or at least, taken away too."""
    seen, drafted = one.observation, case.draft_tokens(one.observation)
    shares = seen.draft_share or ((1.0, 1.0) if is_head(case.method) else ANY)
    rates = seen.acceptance_rate or ANY

    def left(share: float, rate: float, verify_s: float, end: Literal["low", "high"]) -> float:
        own_s = getattr(cost.drafted_step_s, end) + drafted * getattr(cost.token_s, end)
        flat_s: float = getattr(cost.step_s, end) + share * own_s
        return left_over(seen, drafted, share, rate, verify_s) - flat_s

    return LeftOver(
        seen.name,
        seen.baseline_tpot_s,
        min(left(share, rates[0], one.verify_s.high * (1 + doubt), "high") for share in shares),
        max(left(share, rates[1], one.verify_s.low, "low") for share in shares),
    )


def suspicion(evidence: Evidence) -> Literal["sure", "maybe", "no"] | None:
    """Whether a step takes longer than its tokens account for; None where the two speeds are not known.

    With an explanation it is `sure` where more than LEAST_LEFT of a plain step is left whatever is assumed,
    and `maybe` where it is slower and the middle of what is possible leaves something. Without one it is
    `sure` where a step takes longer than its tokens one after another, `maybe` where it is slower.
    """
    slower = is_slower(evidence)
    if slower is None:
        return None
    if lefts := left_overs(evidence):
        if any(one.is_sure for one in lefts):
            return "sure"
        return "maybe" if slower and any(one.least_s + one.most_s > 0 for one in lefts) else "no"
    if not slower:
        return "no"
    steps, tokens = step_ratio(evidence), most_tokens(evidence)
    return "sure" if steps is not None and tokens is not None and steps.low > tokens else "maybe"


def most_left_s(evidence: Evidence) -> float | None:
    """Seconds of a step that nothing accounts for, at most, of the observation that has most."""
    most = max((one.most_s for one in left_overs(evidence)), default=0.0)
    return most if most > 0 else None
