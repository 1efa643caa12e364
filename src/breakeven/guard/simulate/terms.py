"""Terms: on which the policies are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import StepCost
from breakeven.errors import UsageError
from breakeven.guard.settings import GuardSettings
from breakeven.replay.grid import Setting

SEAMS = ("vllm",)
"""Engines into which a guard can be put: see docs/guard.md."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Raises UsageError for a concurrency below 1, or no fixed setting to compare with."""

    cost: StepCost
    words: str
    """One sentence on where the cost comes from."""
    drafting: DraftingCost
    """Of a lookup in `engine`: the same for every policy."""
    engine: str
    grid: Sequence[Setting]
    """The fixed settings."""
    settings: GuardSettings
    epsilons: tuple[float, ...]
    """Of which the guard's gain is told; that of `settings` is told besides."""
    concurrencies: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if not self.grid:
            raise UsageError("there is no fixed setting to compare with: name a drafter, a k and an n range")
        if not self.concurrencies or min(self.concurrencies) < 1:
            raise UsageError(f"concurrencies {self.concurrencies}: give one or more, from 1")
