"""Terms: on which a forecast is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from breakeven.cost.drafting import DraftingCost, drafting_cost
from breakeven.cost.geometry import Geometry
from breakeven.cost.step import StepCost
from breakeven.drafters.base import Drafter
from breakeven.drafters.oracle import Oracle
from breakeven.errors import UsageError
from breakeven.forecast.needed import check_acceptance
from breakeven.interval import Interval

KS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Windows of a learned drafter."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is known of the server and its drafters. Raises UsageError for impossible concurrencies, windows
    and rates."""

    cost: StepCost
    words: str
    """One sentence on where the cost comes from."""
    concurrencies: tuple[int, ...]
    """Kept rising, each once."""
    geometry: Geometry | None = None
    """Of the model, if it is known: for the coverage of experts."""
    reuse: Interval | None = None
    """Of its experts, where a trace of routing tells it."""
    flat_s: float | None = None
    """What speculation adds to every step, if somebody knows; else what is known of each drafter."""
    token_s: float | None = None
    """Of the learned drafter for each drafted token, likewise."""
    method: str = "eagle3"
    """The learned drafter of which is told what it must reach."""
    ks: tuple[int, ...] = KS
    """Its windows."""
    acceptance: tuple[float, ...] = ()
    """Its acceptance by position, if that is known."""
    engine: str | None = None
    """As a run names it; where the record does not tell."""

    def __post_init__(self) -> None:
        for name in ("concurrencies", "ks"):
            rising = sorted(set(getattr(self, name)))
            if not rising or rising[0] < 1:
                raise UsageError(f"{name} {getattr(self, name)}: give one or more, from 1")
            object.__setattr__(self, name, tuple(rising))
        check_acceptance(self.acceptance)

    def drafting_of(self, drafter: Drafter[Any]) -> DraftingCost:
        """Of a drafter that is replayed. The oracle is an upper bound whatever drafting costs."""
        known = drafting_cost(drafter.engine, drafter.name)
        return known if drafter.name == Oracle.name else known.with_given(self.flat_s)

    def drafting_of_head(self, engine: str | None) -> DraftingCost:
        """Of the learned drafter."""
        return drafting_cost(engine, self.method).with_given(self.flat_s, self.token_s)
