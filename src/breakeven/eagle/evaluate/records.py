"""What an evaluation holds. An interval is of 95 %, over requests like those (see part.py), and None where no
chain got so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import Acceptance
from breakeven.interval import Interval

Share = Interval | None

DEFINITIONS: Mapping[str, str] = {
    "chained": (
        "each reply is stepped through as a server would: draft k tokens with the head alone, accept those "
        "before the first that the reply does not have there, take the target's next token, draft again"
    ),
    "teacher_forced": (
        "a chain of k drafts before every token of a reply but its first, fed with the reply's own tokens; "
        "places beyond the end of the reply are left out"
    ),
    "accepted_by_position": (
        "drafts with this many tokens accepted or more / drafts; those that the end of a reply cuts off are "
        "among the drafts"
    ),
    "conditional_by_position": "tokens accepted at this place / drafts with all before it accepted",
    "agreement_by_position": "most probable tokens that the reply has there / chains, whatever came before",
    "overlap_by_position": (
        "mean of Σ min(p, q): the share of drafts that pass at this place if both the target and the head "
        "sample at this temperature"
    ),
    "sampled_by_position": (
        "the same for whole chains up to this place, as these replies, sampled at this temperature, show it: "
        "mean of Π min(1, q(x) / p(x)) over their tokens x"
    ),
    "acceptance_length": "1 + accepted tokens / drafts, as vLLM defines it",
    "tokens_per_step": (
        "emitted tokens / all decode steps; teacher-forced it is 1 + a₁ + a₁a₂ + … of the conditional "
        "acceptances a"
    ),
    "greedy_share": (
        "tokens of the replies that the target finds most probable by the states / tokens, without the first "
        "of each reply"
    ),
    "combined": (
        "for each reply the drafter that had the fewest steps there, known afterwards: a choice in "
        "hindsight, the most that choosing per request could gain"
    ),
}


@dataclass(frozen=True, slots=True)
class Chained:
    """As a server would step."""

    acceptance: Acceptance
    accepted_by_position: tuple[Share, ...]
    conditional_by_position: tuple[Share, ...]
    acceptance_length: Share
    tokens_per_step: Share


@dataclass(frozen=True, slots=True)
class TeacherForced:
    """At every token."""

    contexts: tuple[int, ...]
    """Chains that have a token of a reply at each place."""
    agreement_by_position: tuple[Share, ...]
    conditional_by_position: tuple[Share, ...]
    overlap_by_position: tuple[Share, ...]
    sampled_by_position: tuple[Share, ...] | None
    """None unless the replies were sampled at the temperature of `overlap_by_position`."""
    tokens_per_step: Share


@dataclass(frozen=True, slots=True)
class Part:
    """All replies, or those of a category."""

    replies: int
    output_tokens: int
    chained: Chained
    teacher_forced: TeacherForced


@dataclass(frozen=True, slots=True)
class Rival:
    """A drafter on the same replies."""

    drafter: str
    settings: Mapping[str, Any]
    counters: SpecCounters
    tokens_per_step: float


@dataclass(frozen=True, slots=True)
class Combined:
    """What choosing a drafter for each reply would have gained, in hindsight."""

    tokens_per_step: float
    best_single: str
    """The drafter with the most tokens per step over all replies."""
    gain: Interval
    """Tokens per step of the choice / those of the best single drafter."""
    chosen: Mapping[str, int]
    """Replies by drafter; a tie goes to the better over all replies."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A head on held-out replies."""

    head: str
    k: int
    temperature: float
    """Of the sampling that `overlap_by_position` is about."""
    reply_temperature: float | None
    """At which the target wrote the replies; None where they were recorded elsewhere."""
    greedy_share: float
    total: Part
    by_category: Mapping[str, Part]
    rivals: tuple[Rival, ...]
    """The head among them, best first by tokens per step."""
    combined: Combined
    warnings: tuple[str, ...]
