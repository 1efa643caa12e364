"""Ratios of the evidence, with the bounds that their sources leave; what is not known has none, or any."""

from __future__ import annotations

from breakeven.acceptance.counters import LEAST_DRAFTS
from breakeven.cost.drafting import is_lookup
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.speeds import observations, speedup
from breakeven.explain.explained import ANY
from breakeven.interval import Interval

HEADS = ("eagle", "mtp", "medusa", "draft", "mlp_speculator", "dflash", "dspark")
"""In the name of a method that has weights of its own, and so drafts in every step."""
GOOD = 0.5
"""Acceptance rate from which it is called good: most of what is verified is used."""


def is_head(method: str) -> bool:
    """Whether a model drafts, in every step."""
    return not is_lookup(method) and any(word in method.lower() for word in HEADS)


def ratio_of(evidence: Evidence, name: str) -> Interval | None:
    """A ratio of DEFINITIONS, with the bounds of its source; None where it cannot be derived."""
    for one in evidence.stated:
        if one.name == name and one.value is not None:
            return one.value
    return exactly(None if evidence.counters is None else getattr(evidence.counters, name))


def exactly(value: float | None) -> Interval | None:
    """A value without error; None for none."""
    return None if value is None else Interval(value, value, value)


def has_enough_drafts(evidence: Evidence) -> bool:
    """Whether as many drafts were counted as shares of them need; ratios without counts are believed."""
    counts = evidence.counters
    if counts is None:
        return bool(evidence.stated)
    if counts.drafts is not None:
        return counts.drafts >= LEAST_DRAFTS
    if counts.drafted_tokens is not None:
        return counts.drafted_tokens >= LEAST_DRAFTS * (evidence.drafting.k or 1)
    return True


def draft_share(evidence: Evidence) -> Interval | None:
    """Steps that drafted / all: as counted; of a head all of them; None is not known."""
    return ratio_of(evidence, "draft_share") or exactly(1.0 if is_head(evidence.drafting.method) else None)


def acceptance_rate(evidence: Evidence) -> Interval | None:
    """As counted, else within the bounds that the observations have."""
    found = ratio_of(evidence, "acceptance_rate")
    bounds = [one.acceptance_rate for one in observations(evidence) if one.acceptance_rate is not None]
    if found is not None or not bounds:
        return found
    return _middle(min(low for low, _ in bounds), max(high for _, high in bounds))


def draft_bounds(evidence: Evidence) -> tuple[float, float]:
    """The least and the most that the draft share can be."""
    share = draft_share(evidence)
    return ANY if share is None else (share.low, share.high)


def draft_tokens(evidence: Evidence) -> float | None:
    """Mean tokens of a draft: as counted, else the window."""
    counts = evidence.counters
    if counts is not None and counts.drafts and counts.drafted_tokens:
        return counts.drafted_tokens / counts.drafts
    return evidence.drafting.k


def tokens_per_step(evidence: Evidence) -> Interval | None:
    """As counted; else 1 + draft share · accepted tokens of a draft, with any share where it is not known."""
    counted = ratio_of(evidence, "tokens_per_step")
    if counted is not None:
        return counted
    accepted, share = _accepted_per_draft(evidence), draft_share(evidence)
    if accepted is None:
        return None
    if share is None:
        return _middle(1 + ANY[0] * accepted.low, 1 + ANY[1] * accepted.high)
    return Interval(
        1 + share.estimate * accepted.estimate, 1 + share.low * accepted.low, 1 + share.high * accepted.high
    )


def _middle(low: float, high: float) -> Interval:
    """Bounds, of which nothing more is known: the estimate is their middle, and is not to be shown alone."""
    return Interval((low + high) / 2, low, high)


def _accepted_per_draft(evidence: Evidence) -> Interval | None:
    length = ratio_of(evidence, "mean_acceptance_length")
    if length is not None:
        return Interval(length.estimate - 1, length.low - 1, length.high - 1)
    rate, drafted = acceptance_rate(evidence), draft_tokens(evidence)
    if rate is None or drafted is None:
        return None
    return Interval(drafted * rate.estimate, drafted * rate.low, drafted * rate.high)


def step_ratio(evidence: Evidence) -> Interval | None:
    """How many plain steps a step takes: tokens per step / speedup; None where one of them is not known."""
    tokens, gain = tokens_per_step(evidence), speedup(evidence)
    if tokens is None or gain is None:
        return None
    return Interval(tokens.estimate / gain, tokens.low / gain, tokens.high / gain)


def most_tokens(evidence: Evidence) -> float | None:
    """That a step verifies on average, at most: drafted ones and the target's own."""
    drafted = draft_tokens(evidence)
    return None if drafted is None else 1 + drafted * draft_bounds(evidence)[1]
