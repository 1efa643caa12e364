"""Observations out of two speeds, or out of a comparison of two runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import geometric_mean

from breakeven.acceptance.combine import total
from breakeven.acceptance.counters import SpecCounters
from breakeven.compare.records import Comparison, PromptSpeedup
from breakeven.errors import UsageError
from breakeven.explain.records import Observation

Bounds = tuple[float, float] | None


def from_speeds(
    name: str, baseline: float, candidate: float, acceptance_rate: Bounds = None, draft_share: Bounds = None
) -> Observation:
    """Speeds in tokens per second of one stream. Raises UsageError unless both are above 0."""
    for speed in (baseline, candidate):
        if not (math.isfinite(speed) and speed > 0):
            raise UsageError(
                f"--speeds {name}: {speed:g} tokens per second is no speed: "
                "type  --speeds NAME=BASELINE,CANDIDATE  with two numbers above 0"
            )
    return Observation(name, 1 / baseline, 1 / candidate, acceptance_rate, draft_share)


def from_comparison(
    comparison: Comparison,
    by_prompt: Mapping[str, SpecCounters],
    overall: SpecCounters | None,
    acceptance_rate: Bounds = None,
    draft_share: Bounds = None,
    verdict: str = "",
) -> tuple[Observation, ...]:
    """One observation per category, TPOTs as geometric means over its prompts.

    What the candidate counted of a category's prompts comes first, then `overall`, then the bounds given.
    Raises UsageError where no prompt has a TPOT on both sides, with what the `verdict` says of it.
    """
    if not comparison.prompts:
        why = next(iter(comparison.warnings), verdict) or "replies of two tokens or more have one"
        raise UsageError(f"no prompt has a TPOT on both sides ({why}): measure both again")
    categories: dict[str, list[PromptSpeedup]] = {}
    for prompt in comparison.prompts:
        categories.setdefault(prompt.category or "all", []).append(prompt)
    return tuple(
        _observation(name, prompts, _counted(prompts, by_prompt) or overall, acceptance_rate, draft_share)
        for name, prompts in categories.items()
    )


def _counted(prompts: list[PromptSpeedup], by_prompt: Mapping[str, SpecCounters]) -> SpecCounters | None:
    if any(prompt.id not in by_prompt for prompt in prompts):
        return None
    return total([by_prompt[prompt.id] for prompt in prompts])


def _observation(
    name: str, prompts: list[PromptSpeedup], counted: SpecCounters | None, rate: Bounds, share: Bounds
) -> Observation:
    counts = counted or SpecCounters()
    drafted, drafts = counts.drafted_tokens, counts.drafts
    return Observation(
        name,
        geometric_mean(prompt.baseline_tpot_s for prompt in prompts),
        geometric_mean(prompt.candidate_tpot_s for prompt in prompts),
        _known(counts.acceptance_rate, rate),
        _known(counts.draft_share, share),
        drafted / drafts if drafted and drafts else None,
        counts.tokens_per_step,
    )


def _known(counted: float | None, given: Bounds) -> Bounds:
    return given if counted is None else (counted, counted)
