"""LivePlan: what a live service is asked, with what turned on, in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from breakeven.engines.dialect import Dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.servers.lifecycle import START_LIMIT_S
from breakeven.servers.watch import Bounds
from breakeven.trial.live_order import Order, Repeats, before, once, planned
from breakeven.trial.plan import TrialPlan


@dataclass(frozen=True, slots=True)
class LivePlan:
    """What is asked of a service, with what turned on, in which order."""

    trial: TrialPlan
    candidates: tuple[SpeculationConfig, ...]
    """In the order in which they are tried."""
    order: Order = "ABA"
    start_limit_s: float = START_LIMIT_S
    """In which a restarted server has to be ready."""
    keep_if: Literal["faster"] | None = None
    """The verdict with which the change stays; None: it never does."""
    bounds: Bounds = field(default_factory=Bounds)
    """What a candidate may do wrong before it is taken out."""
    fresh_prompts: bool = False
    """Ask a candidate each prompt once only, also where its drafter is not known to learn across requests."""

    @property
    def most(self) -> int:
        """Repeats of a side, if nothing ends them sooner."""
        return self.trial.repeats or self.trial.cap

    @property
    def before(self) -> int:
        """Repeats of the baseline as it was found."""
        return before(self.order, self.most)

    def is_fresh(self, dialect: Dialect, candidate: SpeculationConfig) -> bool:
        """Whether it is asked each prompt once only: a drafter that remembers an answer drafts it again."""
        return self.fresh_prompts or dialect.learns(candidate)

    def repeats(self, dialect: Dialect, candidate: SpeculationConfig, asked: int) -> Repeats:
        """Once the baseline was asked so many. Raises UsageError for none."""
        fresh = self.is_fresh(dialect, candidate)
        return once(asked) if fresh and asked else planned(self.order, self.most, asked)
