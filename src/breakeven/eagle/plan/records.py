"""What a plan holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from breakeven.eagle.layers import Convention
from breakeven.eagle.plan.asked import Asked
from breakeven.eagle.plan.assumed import Assumed
from breakeven.eagle.plan.head import HeadSize
from breakeven.eagle.plan.hours import Hours
from breakeven.eagle.plan.memory import TrainingMemory
from breakeven.eagle.plan.routes import Route
from breakeven.eagle.plan.runs import TrainingRun
from breakeven.eagle.plan.storage import Storage
from breakeven.forecast.records import CostBasis, Needed, Published
from breakeven.interval import Interval

Outcome = Literal["go", "no-go", "undecided"]


@dataclass(frozen=True, slots=True)
class Reached:
    """What a head would do if it reached what published ones did."""

    k: int
    concurrency: int
    needed: Interval
    """Acceptance length at which it breaks even."""
    lengths: Interval
    """That were published: the median, the shortest and the longest."""
    own: bool
    """Whether they are of heads for this target; else of others."""
    speedup: Interval
    """The published lengths / those needed, ends against ends."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One ground of the decision."""

    topic: Literal["acceptance", "data", "memory and disk", "GPU hours"]
    outcome: Outcome
    words: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it; figures in bytes, hours and tokens."""

    asked: Asked
    head: HeadSize
    layers: Mapping[Convention, tuple[int, ...]]
    """Of the three layers whose states are read, as each tool counts."""
    needed: tuple[Needed, ...]
    """By window, then by concurrency."""
    published: tuple[Published, ...]
    """Acceptance lengths of EAGLE-3 heads as chains."""
    reached: Reached | None
    """At the window where it comes nearest to the goal; None where nothing was published at any."""
    concurrency: int
    """At which it is decided."""
    basis: CostBasis
    runs: tuple[TrainingRun, ...]
    heads: tuple[str, ...]
    """Published for this target: to be tried before any training."""
    storage: Storage
    hours: Hours
    memory: tuple[TrainingMemory, ...]
    target_devices: int
    """The fewest of the training devices that hold the target's weights."""
    routes: tuple[Route, ...]
    assumed: tuple[Assumed, ...]
    outcome: Outcome
    reasons: tuple[Reason, ...]
    not_judged: tuple[str, ...]
    """What would be judged too, and which option says it."""
    next_commands: tuple[str, ...]
    warnings: tuple[str, ...]
