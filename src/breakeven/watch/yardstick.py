"""Yardstick: what plain steps and verification cost on one server, as a stored calibration tells."""

from __future__ import annotations

from dataclasses import dataclass, field

from breakeven.cost.calibration import Calibration
from breakeven.cost.drafting import DraftingCost, drafting_cost
from breakeven.cost.measured import Measured


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Raises UsageError where the calibration has too few points for a curve."""

    calibration: Calibration
    method: str = "ngram"
    """How the servers draft, for what drafting itself takes."""
    flat_s: float | None = None
    """As DraftingCost.with_given."""
    token_s: float | None = None
    k: int | None = None
    """Tokens of each draft, where the server does not count them."""
    cost: Measured = field(init=False)

    def __post_init__(self) -> None:
        curve = self.calibration.curve()
        object.__setattr__(self, "cost", Measured(curve, self.calibration.moe))

    def drafting(self, engine: str) -> DraftingCost:
        """For an engine as runs name it."""
        return drafting_cost(engine, self.method).with_given(self.flat_s, self.token_s)

    def why_not_of(self, engine: str, model: str | None) -> str | None:
        """Why a server is not the one that was calibrated; None where nothing says so."""
        of = self.calibration
        for name, calibrated, watched in (
            ("engine", of.server.engine, engine),
            ("model", of.model, model),
        ):
            if calibrated is not None and watched is not None and calibrated != watched:
                return f"the calibration is of another {name}: {calibrated}, not {watched}"
        return None
