"""What a simulation holds. Speedups are plain steps / time of the policy's steps: above 1 it gains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from breakeven.acceptance.counters import SpecCounters
from breakeven.cost.step import Source
from breakeven.guard.settings import GuardSettings
from breakeven.replay.records import FirstToken, Origin

Kind = Literal["fixed", "test-and-set", "guard", "oracle"]
NO_EPSILON = float("inf")
"""A guard without a ledger: it takes every draft that should pay."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request under one policy."""

    id: str
    category: str
    emitted_tokens: int
    """By decode steps: as many as it has plain steps."""
    speedup: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Of some requests, one at least."""

    speedup: float
    """The geometric mean over requests, as a forecast's decode speedup."""
    total: float
    """Plain steps of all requests / time of all: long requests count for more."""
    worst: Request


@dataclass(frozen=True, slots=True)
class Played:
    """One policy on the record."""

    kind: Kind
    name: str
    """Such as `vllm-ngram k=5 n=2–4`."""
    settings: Mapping[str, Any]
    flags: str
    """What turns it on in its engine; empty where nothing does."""
    speed: Speed
    by_category: Mapping[str, Speed]
    counters: SpecCounters
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class AtEpsilon:
    """The guard with another ε."""

    epsilon: float
    """NO_EPSILON: without a ledger."""
    guard: Played


@dataclass(frozen=True, slots=True)
class AtConcurrency:
    """Several requests decoded at a time."""

    concurrency: int
    guard: Played
    """Through the policy, each step of the batch as it comes."""
    reasons: Mapping[str, int]
    """How often the policy decided what, by reason."""
    best_fixed: Played | None
    """The fastest fixed setting there, by forecast's mean field; None without any."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """All policies on one record, at concurrency 1 unless said otherwise."""

    origin: Origin
    engine: str
    """Whose fixed settings were tried."""
    has_seam: bool
    """Whether a guard can be put into that engine."""
    first_token: FirstToken
    requests: int
    output_tokens: int
    categories: tuple[str, ...]
    cost_source: Source
    cost_words: str
    drafting_words: str
    idle: float
    """What having a drafter at all adds to every step of every policy, in plain steps."""
    settings: GuardSettings
    fixed: tuple[Played, ...]
    """Best first."""
    guard: Played
    by_epsilon: tuple[AtEpsilon, ...]
    """ε falling, NO_EPSILON first if it was asked for."""
    test_and_set: Played
    oracle: Played
    by_concurrency: tuple[AtConcurrency, ...]
    skipped: Mapping[str, int]
    warnings: tuple[str, ...]
    elapsed_s: float
    next_commands: tuple[str, ...] = ()
    """What to type next: next_steps.py, of what a simulation itself does not know."""

    @property
    def best_fixed(self) -> Played | None:
        """Chosen in hindsight, on this very record; None without any."""
        return self.fixed[0] if self.fixed else None

    def best_fixed_of(self, category: str) -> Played | None:
        """Chosen in hindsight for this category alone."""
        return max(self.fixed, key=lambda one: one.by_category[category].speedup, default=None)
