"""When to stop asking: a rule whose verdict may be read whenever it stops.

Looking after every repeat and stopping at the first interval that excludes 1 would call no difference a
difference far too often. Here the error is shared out: of K planned looks each uses an interval at level
1 − alpha/K, so that over all looks together, and however dependent they are, one misses the truth with
probability alpha at most (Bonferroni; as a spending function this is the uniform one of Lan & DeMets 1983).
The prompts stay the same from look to look, so the looks' increments are not independent and sharper
boundaries, which assume it, would not hold. Looks are spaced by a third to a half more repeats each, as in
the geometric epochs of Howard, Ramdas, McAuliffe & Sekhon (2021): next to a look after every repeat this
needs fewer repeats for the same error (benchmarks/power.py). A trial cut short between looks spends its
next look's share early, and stays valid.
"""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.compare.outcome import disagreement, outcome
from breakeven.compare.projection import project
from breakeven.compare.records import Comparison
from breakeven.errors import UsageError
from breakeven.units import count

MIN_REPEATS = 2
"""One repeat cannot tell the machine's busy spells from the effect."""
MIN_REPEATS_FUTILE = 3
"""Two repeats say too little of how much of the spread is the prompts'."""
FUTILITY_MARGIN = 1.25
"""How far beyond the needed half-width the best reachable one must be: it is itself an estimate."""
FUTILITY_SHARE = 0.8
"""The part of the half-width that must be the prompts' own. With both limits, simulated trials without any
spread over prompts stop as futile in 5 to 10 % of cases, and a true 5 % effect loses 2 % of its decisions."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to stop, and why."""

    stop: bool
    reason: str


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Repeats 2, 3, 4, 6, 8, 12, … up to `cap`, each looked at with `alpha_per_look`.

    Raises UsageError if the cap leaves no room for two repeats.
    """

    cap: int = 12
    alpha: float = 0.05
    """The error over all looks together."""

    def __post_init__(self) -> None:
        if self.cap < MIN_REPEATS:
            raise UsageError(f"a cap of {self.cap} leaves nothing to stop early: type  --repeats {self.cap}")

    @property
    def looks(self) -> tuple[int, ...]:
        """The repeats at which to compare."""
        doubling = (start << shift for shift in range(self.cap.bit_length()) for start in (2, 3))
        return tuple(sorted({*(repeats for repeats in doubling if repeats < self.cap), self.cap}))

    @property
    def alpha_per_look(self) -> float:
        """What `compare` takes as `alpha` at each look."""
        return self.alpha / len(self.looks)

    def decide(self, comparison: Comparison, repeats: int) -> Decision:
        """Judge a comparison made with `alpha_per_look` after so many repeats of every prompt."""
        if repeats < self.cap and repeats not in self.looks:
            due = next(look for look in self.looks if look > repeats)
            return Decision(False, f"the next look is after {due} repeats")
        if comparison.speedup is not None:
            found = outcome(comparison.speedup, comparison.floor)
            if found != "undecided":
                return Decision(True, f"decided after {count(repeats, 'repeat')}: {found}")
            if repeats < self.cap and _futile(comparison, repeats):
                return Decision(True, _futile_reason(comparison, repeats))
        if repeats >= self.cap:
            return Decision(True, f"undecided after {count(repeats, 'repeat')}, the most allowed")
        return Decision(False, f"undecided after {count(repeats, 'repeat')}")


def _futile(comparison: Comparison, repeats: int) -> bool:
    projection = project(comparison)
    return (
        projection is not None
        and repeats >= MIN_REPEATS_FUTILE
        and projection.half_at_best > FUTILITY_MARGIN * projection.needed
        and projection.half_at_best > FUTILITY_SHARE * projection.half
    )


def _futile_reason(comparison: Comparison, repeats: int) -> str:
    """Why more repeats of the same prompts would not help, with the categories that pull apart."""
    reason = f"stopped after {count(repeats, 'repeat')}: the answer depends on the prompt, so add prompts"
    apart = disagreement(comparison)
    return f"{reason}; {apart}" if apart else reason
