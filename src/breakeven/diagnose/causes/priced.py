"""Price: what a step costs with speculation, in plain steps of as many sequences."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from breakeven.cost.drafting import DraftingCost, drafting_cost
from breakeven.cost.step import Step, StepCost
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import draft_tokens
from breakeven.forecast.decode import MOST_DRAFT_TOKENS, MOST_STEP_TOKENS, mean_step, relative_cost
from breakeven.interval import Interval

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Price:
    """By a known cost of the target's step, with what the drafter and the handling of drafts add."""

    cost: StepCost
    drafting: DraftingCost
    sequences: int
    context_tokens: float

    @property
    def plain_s(self) -> Interval:
        return self.cost.seconds(Step(1, self.sequences, self.context_tokens))

    @property
    def twice_the_tokens(self) -> Interval:
        """A step with two tokens of each sequence, what is in their caches unchanged, in plain steps."""
        two, one = (Step(tokens, self.sequences, self.context_tokens) for tokens in (2, 1))
        return self.cost.relative(two, one)

    def mean_step(self, draft_share: float, drafted: float) -> Interval:
        """Where each sequence drafts so many tokens, in this share of its steps: see forecast/decode.py."""
        relative = relative_cost(self.cost, self.sequences, ceil(drafted), self.context_tokens)
        return mean_step(relative, self.drafting, draft_share, drafted)

    def between(self, draft_shares: Bounds, drafted: float) -> Bounds:
        """A mean step at least and at most, whatever of the two shares is true."""
        low, high = (self.mean_step(share, drafted) for share in draft_shares)
        return low.low, high.high

    def needed_rate(self, draft_share: float, drafted: float) -> Interval:
        """Acceptance rate from which it pays: the mean step beyond a plain one / the tokens drafted in it.

        With a flat cost d of every step and V of verifying, in plain steps, (V + d / f) / drafted.
        """
        full = self.mean_step(draft_share, drafted)
        return Interval(
            *((end - 1) / (draft_share * drafted) for end in (full.estimate, full.low, full.high))
        )

    def for_one_sequence(self) -> Price:
        return Price(self.cost, self.drafting, 1, self.context_tokens)


def price_of(evidence: Evidence) -> Price | None:
    """None where no cost of a step is known, nor how many sequences one has, or none can be that large."""
    if evidence.cost is None or evidence.sequences is None:
        return None
    drafted = max(draft_tokens(evidence) or 0, evidence.drafting.k or 0)
    if drafted > MOST_DRAFT_TOKENS or evidence.sequences * (1 + drafted) > MOST_STEP_TOKENS:
        return None
    drafting = drafting_cost(evidence.engine, evidence.drafting.method)
    return Price(evidence.cost, drafting, max(round(evidence.sequences), 1), evidence.context_tokens)
