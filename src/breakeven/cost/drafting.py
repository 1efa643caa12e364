"""What speculation costs beside the target's step: the drafter's time, and the handling of drafts."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class DraftingCost:
    """Seconds that speculation adds to a step, whatever the target model takes."""

    step_s: Interval
    """Of every step once speculation is on, drafted or not."""
    drafted_step_s: Interval
    """Besides, of a step in which some sequence verifies a draft."""
    token_s: Interval
    """Of the drafter, for each token of a draft: made one after another, for all sequences at once."""
    source: str
    """Where the figures come from, in a sentence."""


def drafting_cost(engine: str | None, method: str) -> DraftingCost:
    """For an engine as a run names it, and a drafter's name (`vllm-ngram`) or method (`eagle3`, `mtp`)."""
    raise NotImplementedError
