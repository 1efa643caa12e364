"""The order of a trial: which side is asked what, when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakeven.errors import UsageError
from breakeven.units import count
from breakeven.workload.prompts import Request, Sampling, Workload

SIDES = ("baseline", "candidate")
AUTO_CAP = 12
"""The most repeats that `--repeats auto` takes unless told otherwise."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """What a trial asks, and when it stops."""

    workload: Workload
    sampling: Sampling
    repeats: int | None = None
    """None stops as soon as the verdict is decided."""
    cap: int = AUTO_CAP
    concurrency: int = 1
    warmup: int = 1
    """Requests that each side answers first, not kept."""
    floor: float = 0.02
    confidence: float = 0.95
    time_limit_s: float | None = None
    """No further repeat is begun that would end after it, judged by the longest so far."""

    def __post_init__(self) -> None:
        """Raises UsageError where the workload cannot keep the concurrency busy."""
        if self.concurrency > len(self.workload.prompts):
            raise UsageError(
                f"{count(len(self.workload.prompts), 'prompt')} cannot keep {self.concurrency} in flight: "
                f"add prompts, or type --concurrency {len(self.workload.prompts)}"
            )


@dataclass(frozen=True, slots=True)
class Ask:
    """One request put to one side."""

    side: str
    request: Request


def loads(plan: TrialPlan, repeat: int) -> Iterator[tuple[Ask, ...]]:
    """One repeat in ABBA order, so that a steady drift of the machine falls on both sides alike.

    Each load is sent at the plan's concurrency, and ends before the next begins. Asked one at a time, the
    sides alternate within one load: AB, BA, AB, … by prompt, and the other way round in the next repeat.
    Under concurrency a load is the whole workload on one side: AB in one repeat and BA in the next.
    """
    requests = [Request(prompt, repeat, block=repeat) for prompt in plan.workload.prompts]
    if plan.concurrency == 1:
        yield tuple(Ask(side, asked) for i, asked in enumerate(requests) for side in _order(repeat + i))
        return
    for side in _order(repeat):
        yield tuple(Ask(side, asked) for asked in requests)


def _order(number: int) -> tuple[str, ...]:
    return SIDES if number % 2 == 0 else SIDES[::-1]
