"""Measurement: what makes the figures mean something else than the server's speed and acceptance."""

from __future__ import annotations

from breakeven.client.reasons import gathered
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.counting import counters_reset, few_drafts, sources_disagree
from breakeven.diagnose.causes.sides import answered, sentence
from breakeven.diagnose.causes.warm_up import warm_up_in_window
from breakeven.diagnose.evidence import Evidence
from breakeven.explain.records import Finding
from breakeven.units import share

MANY_TRUNCATED = 0.1
"""Of the replies."""
MOSTLY_TRUNCATED = 0.5
TRUNCATED_APART = 0.05
"""Between the sides, as a share of the replies: they did not do the same work."""
ENOUGH_TOKENS = 8192
"""Suggested where it is not known how many were asked for; reasoning models seldom take more."""


def client_limited(evidence: Evidence) -> Finding | None:
    """The run's own self-check failed: its times are the client's, or of another load than was asked for."""
    failed = gathered((name, seen.client_reasons) for name, seen, _ in answered(evidence))
    if not failed:
        return None
    told = [reason.told(" and ".join(reason.places)) for reason in failed]
    return Finding(
        "client_limited",
        "The client failed its self-check",
        f"{sentence('. '.join(told))}. Times of such a run are not the server's",
        "high",
        "breakeven measure --url <url> --prompts <prompts> --concurrency 1",
        "See whether the self-check passes; until it does, nothing is concluded from these speeds.",
    )


def truncated_reasoning(evidence: Evidence) -> Finding | None:
    """Replies cut off at max_tokens while they still reasoned: the answer was never decoded."""
    seen = list(answered(evidence))
    parts = [one.truncated_in_reasoning / n for _, one, n in seen] or [0.0]
    apart = max(parts) - min(parts) >= TRUNCATED_APART
    if max(parts) < MANY_TRUNCATED and not apart:
        return None
    said = "; ".join(
        f"{name} {one.truncated_in_reasoning} of {n} ({share(part)})"
        for (name, one, n), part in zip(seen, parts, strict=True)
    )
    differ = ". The sides differ, so they did not do the same work" if apart else ""
    asked = max(one.max_tokens or 0 for _, one, _ in seen)
    return Finding(
        "truncated_reasoning",
        "Replies end inside reasoning",
        f"At max_tokens, before any content: {said}{differ}. What is shown of them is of reasoning alone",
        "high" if apart or max(parts) >= MOSTLY_TRUNCATED else "medium",
        f"breakeven measure --url <url> --prompts <prompts> --max-tokens {2 * asked or ENOUGH_TOKENS}",
        "See whether acceptance is another once there are answers: drafts copy from reasoning.",
    )


VOIDING: tuple[Cause, ...] = (
    client_limited,
    counters_reset,
    warm_up_in_window,
    sources_disagree,
    few_drafts,
)
OTHERS: tuple[Cause, ...] = (truncated_reasoning,)
