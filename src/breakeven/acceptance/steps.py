"""Decode steps where nobody counts them, from the output tokens; and the ratios that need them."""

from __future__ import annotations

from dataclasses import replace

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.stated import NEEDS, Stated, stated
from breakeven.interval import Interval

BY_TOKENS = "decode steps = output tokens − accepted ones − the first of each request"
LEAST_REPLY_TOKENS = 8
"""Output tokens of a mean reply at least, where the page counts no requests: an assumption. Of traffic with
shorter replies the steps may lie below their bound."""


def emitted_of(output_tokens: int | None, requests: int = 1) -> int | None:
    """Tokens of the decode steps of so many requests: the prefill gives the first of each."""
    return None if output_tokens is None else max(output_tokens - requests, 0)


def steps_of(emitted: int | None, accepted: int | None, drafts: int | None) -> int | None:
    """Decode steps, where they are not counted: each emits one token and those accepted in it.

    A last step may have had tokens accepted beyond the reply's end: steps are never fewer than drafts, and
    one at least emitted what came after the first token (mlx-vlm#2324).
    """
    if emitted is None or accepted is None:
        return None
    return max(emitted - accepted, drafts or 0, min(emitted, 1))


def ratios(counters: SpecCounters, load: Load) -> tuple[Stated, ...]:
    """Every ratio of DEFINITIONS, in that order; with bounds where the steps are known between bounds."""
    steps = decode_steps(counters, load)
    return tuple(_with_steps(one, counters, steps) for one in stated(counters))


def decode_steps(counters: SpecCounters, load: Load) -> Interval | None:
    """Steps of all sequences, summed, as SpecCounters.steps; None where nothing tells.

    Every step emits one token of the target's own and those accepted in it, and the prefill of each request
    its first. A request whose first token fell into the window ended in it, or is still running; where they
    are not counted, replies are taken to have LEAST_REPLY_TOKENS. The last step of a reply may accept tokens
    beyond its end: steps are never fewer than drafts.
    """
    least = counters.drafts or 0
    if counters.steps is not None:
        known = max(counters.steps, least)
        return Interval(known, known, known)
    if load.output_tokens is None or counters.accepted_tokens is None:
        return None
    most = load.output_tokens - counters.accepted_tokens
    if load.requests is None:
        ended, first = 0, load.output_tokens // LEAST_REPLY_TOKENS
    else:
        ended, first = load.requests, load.requests + round(load.running or 0)
    return Interval(*(max(n, least) for n in (most - ended, most - first, most)))


def _with_steps(one: Stated, counters: SpecCounters, steps: Interval | None) -> Stated:
    above, below = NEEDS[one.name]
    count = getattr(counters, above)
    if one.value is not None or below != "steps" or count is None or steps is None or steps.estimate <= 0:
        return one
    own = 1 if one.name == "tokens_per_step" else 0
    value = Interval(*(own + count / n for n in (steps.estimate, steps.high, max(steps.low, 1.0))))
    return replace(one, value=value, source=f"{counters.source}; {BY_TOKENS}", why="")
