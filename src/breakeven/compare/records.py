"""What a comparison of two runs holds. Ratios are baseline / candidate: above 1 the candidate is faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class PromptSpeedup:
    """One prompt on both sides. TPOTs are geometric means over the pairs, in s; speedup is their ratio."""

    id: str
    category: str
    baseline_tpot_s: float
    candidate_tpot_s: float
    speedup: Interval
    """low and high are None-free: with one pair they equal the estimate, and `pairs` says so."""
    pairs: int


@dataclass(frozen=True, slots=True)
class SideQuality:
    """What could make a side's figures mean something else."""

    requests: int
    errors: int
    truncated_in_reasoning: int
    """finish_reason is length and no content token came."""
    degenerate: int
    """Replies that end in a short loop: they inflate acceptance and say nothing of real text."""
    untimed: Mapping[str, int]
    """Replies without a TPOT, which cannot be paired, by the reason, the most frequent first."""
    max_tokens: int | None = None
    """The largest that was asked for; None if nothing was asked."""

    @property
    def without_tpot(self) -> int:
        return sum(self.untimed.values())


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two greedy replies to one prompt first differ, counted from 0."""

    prompt_id: str
    repeat: int
    unit: Literal["token", "character"]
    position: int


@dataclass(frozen=True, slots=True)
class Lossless:
    """Whether greedy replies are the same on both sides. A temperature above 0 leaves nothing to compare."""

    identical: int
    compared: int
    first_divergence: Divergence | None
    """The earliest position over all pairs."""
    reason: str | None = None
    """Why nothing was compared, if nothing was."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The baseline's last block against its first: TPOT first / last, so below 1 it became slower."""

    ratio: Interval | None
    """None with fewer than two baseline blocks, or too few prompts."""
    significant: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, paired by prompt and repeat."""

    speedup: Interval | None
    """Geometric mean over prompts; None when nothing could be paired."""
    confidence: float
    """The level of every interval here, such as 0.95."""
    floor: float
    """Changes smaller than this share count as none, such as 0.02."""
    prompts: tuple[PromptSpeedup, ...]
    by_category: dict[str, Interval]
    repeats: int
    """Complete repeats on both sides."""
    baseline: SideQuality
    candidate: SideQuality
    lossless: Lossless
    drift: Drift
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, in a word and in a sentence."""

    outcome: Literal["faster", "slower", "same", "undecided", "refused"]
    reason: str
    next_command: str | None = None
    """What to type next; `…` stands for the options of this trial."""
