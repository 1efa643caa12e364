"""Case: all that is known of one experiment with speculation, whatever told it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from breakeven.cost.geometry import Geometry
from breakeven.cost.hardware import Hardware
from breakeven.cost.modelled import PARTS, Modelled
from breakeven.cost.step import Step, StepCost
from breakeven.engines.speculation import MOST_K
from breakeven.errors import UsageError
from breakeven.explain.records import Observation

REUSE = (0.0, 0.3)
"""Of experts, least and most. None at all is the most that verification can cost; 0.3 is what neighbouring
tokens of real text share beyond chance (see cost/coverage.py). A slowdown is explained with the dearer half
of what is possible, so that what stays unexplained does not come from an optimistic model."""
NO_COST = (
    "what verifying costs is not known: type  --calibration FOLDER  with what `breakeven calibrate` measured "
    "of the baseline, or  --model X --hardware Y [--tp N]  such as  --model llama-3.1-8b --hardware h100-sxm"
)


@dataclass(frozen=True)
class Case:
    """Raises UsageError for what cannot be."""

    model: str | None
    geometry: Geometry | None
    hardware: Hardware | None
    """None, as `geometry`, where `measured` tells the cost of a step: what needs them is left out."""
    k: int
    """The window: most tokens of a draft."""
    method: str
    observations: tuple[Observation, ...]
    engine: str | None = None
    engine_version: str | None = None
    tp: int = 1
    ep: int = 1
    context_tokens: float = 0
    sequences: int = 1
    """In each step: the concurrency of the measurement."""
    reuse: tuple[float, float] = REUSE
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the drafter was told, as its engine names it, such as {"prompt_lookup_max": 4}."""
    profiled_s: Mapping[str, float] = field(default_factory=dict)
    """Parts of the plain step that a profile gave, seconds by their name."""
    measured: StepCost | None = None
    """By the server's own concurrency curve; without it, the cost of verifying is modelled."""
    doubts: tuple[str, ...] = ()
    """What qualifies `measured`, each a sentence."""
    confounders: tuple[str, ...] = ()
    """What differs between the two measurements beside speculation, or disturbed them, each a sentence."""
    refused: str | None = None
    """Why no verdict may be given of the observations (see verdict.judge), a sentence; None where it may."""

    def __post_init__(self) -> None:
        if not 1 <= self.k <= MOST_K:
            raise UsageError(f"a window of {self.k} tokens: type --k 1 to {MOST_K}")
        if not self.observations:
            raise UsageError("nothing was observed: type --speeds NAME=BASELINE,CANDIDATE in tok/s")
        if not 0 <= self.reuse[0] <= self.reuse[1] <= 1:
            low, high = self.reuse
            raise UsageError(f"a reuse of {low:g} to {high:g}: type --reuse with 0 to 1, low first")
        for one in self.observations:
            self._check(one)
        self._check_profile()
        if self.is_modelled or self.measured is None:
            self.modelled.parts(self.plain_step)  # raises for what cannot be modelled

    def _check(self, one: Observation) -> None:
        for seconds in (one.baseline_tpot_s, one.candidate_tpot_s):
            if not (math.isfinite(seconds) and seconds > 0):
                raise UsageError(f"{one.name}: a TPOT of {seconds} s: give two speeds above 0")
        for name, bounds in (("acceptance rate", one.acceptance_rate), ("draft share", one.draft_share)):
            if bounds is not None and not 0 <= bounds[0] <= bounds[1] <= 1:
                low, high = bounds
                raise UsageError(
                    f"{one.name}: {name} {low:g} to {high:g} is no share: give 0 to 1, low first"
                )

    def _check_profile(self) -> None:
        shortest = min(one.baseline_tpot_s for one in self.observations)
        for name, seconds in self.profiled_s.items():
            if name not in PARTS:
                raise UsageError(f"--profiled {name}: there are {', '.join(PARTS)}")
            if not (math.isfinite(seconds) and seconds >= 0):
                raise UsageError(f"--profiled {name}={seconds * 1e3:g}: give milliseconds, 0 or more")
        if (whole := sum(self.profiled_s.values())) > shortest:
            raise UsageError(
                f"the profiled parts take {whole * 1e3:.1f} ms, more than the plain step of "
                f"{shortest * 1e3:.1f} ms: profile the baseline, and give milliseconds per step"
            )

    @property
    def plain_step(self) -> Step:
        return self.step(0)

    def step(self, drafted: float) -> Step:
        """One in which every sequence verifies `drafted` drafted tokens."""
        return Step(1 + drafted, self.sequences, self.context_tokens)

    @property
    def is_modelled(self) -> bool:
        """Whether both model and hardware are known."""
        return self.geometry is not None and self.hardware is not None

    @cached_property
    def modelled(self) -> Modelled:
        """With the least reuse, so the most that experts can cost. Raises UsageError unless is_modelled."""
        if self.geometry is None or self.hardware is None:
            raise UsageError(NO_COST)
        return Modelled(self.geometry, self.hardware, self.tp, self.ep, reuse=self.reuse[0])

    @cached_property
    def modelled_with_most_reuse(self) -> Modelled:
        return replace(self.modelled, reuse=self.reuse[1])

    @property
    def device(self) -> str | None:
        """The hardware in words, such as `8 × rtx-pro-6000-ws (PCIe Gen5 x16)`."""
        if self.hardware is None:
            return None
        if self.tp == 1:
            return self.hardware.name
        link = f" ({self.hardware.link.kind})" if self.hardware.link else ""
        return f"{self.tp} × {self.hardware.name}{link}"

    def draft_tokens(self, one: Observation) -> float:
        """Mean tokens of a draft: as counted, else the window."""
        return self.k if one.draft_tokens is None else one.draft_tokens
