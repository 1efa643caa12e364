"""What a plan is asked for: the data, the machine, the budget, and what is to be reached."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.cost.geometry import Geometry
from breakeven.cost.hardware import Hardware
from breakeven.cost.step import StepCost
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class Data:
    """What is learned from."""

    samples: int
    tokens_per_sample: Interval
    reply_tokens_per_sample: Interval
    """Of them, those that the target generates; 0 where recorded replies are kept."""
    epochs: Interval
    steps: int
    """Of the training-time test."""
    draft_vocabulary: int
    """0 is the target's own."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the data are generated, and where the states are made and the head is trained."""

    server_gpus: int
    """Of the server whose steps the cost is of."""
    generation_concurrency: int
    """Requests in flight at that server while it generates."""
    gpu: Hardware
    """For states and training."""
    gpus: int
    """Of these, all that there are."""


@dataclass(frozen=True, slots=True)
class Budget:
    """None is not said."""

    gpu_hours: float | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """All of it."""

    model: str
    """As the user names it."""
    geometry: Geometry
    cost: StepCost
    data: Data
    machine: Machine
    budget: Budget
    goal: float
    """Speedup that makes the training worth while."""
