"""Prefill: what a prompt token takes before the first output token, which speculation leaves as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from breakeven.cost.step import Source, Step, StepCost
from breakeven.latency import request_latency
from breakeven.latency.tokens import count
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run
from breakeven.units import duration

LARGE_STEP = 2048
"""Tokens from which on a step is taken to grow as a prefill does: arithmetic rules it then, not weights."""
LEAST_PROMPTS = 5
"""For a slope; the half of its pairs may be off."""
LEAST_SPREAD = 2
"""Longest prompt / shortest, for a slope: nearly equal ones tell noise."""
MOST_PROMPTS = 200
"""Whose pairs are looked at; more tell no more."""
_FROM_COST = {
    "measured": "the calibration's last slope",
    "anchored": "the modelled step at large batches",
    "modelled": "the modelled step at large batches",
}
_Pair = tuple[int, float]
"""Prompt tokens that were computed, and seconds to the first token."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """What one prompt token takes."""

    seconds_per_token: float
    words: str
    """Where the figure comes from, in a sentence."""


def prefill_given(ms_per_token: float) -> Prefill:
    """As somebody states it."""
    return Prefill(ms_per_token / 1e3, f"{_each(ms_per_token / 1e3)}, as given.")


def prefill_of_run(run: Run) -> Prefill | None:
    """From the times to first token of a run at concurrency 1; None where the run tells nothing of it."""
    schedule = run.meta.schedule
    if schedule.mode != "closed" or schedule.concurrency != 1:
        return None
    pairs = list(_first_times(run.traces()).values())[:MOST_PROMPTS]
    if not pairs:
        return None
    slope = _slope(pairs)
    if slope is not None:
        how = f"the slope of the time to first token over {len(pairs)} prompts of the record"
        return Prefill(slope, f"{_each(slope)}, {how}.")
    each = median(seconds / tokens for tokens, seconds in pairs)
    how = "the record's median time to first token by prompt token, in which all that is flat counts too"
    return Prefill(each, f"{_each(each)}, {how}.")


def prefill_of_cost(cost: StepCost) -> Prefill:
    """(T(2n) − T(n)) / n for one sequence with n = LARGE_STEP tokens."""
    small, large = (cost.seconds(Step(tokens=n)).estimate for n in (LARGE_STEP, 2 * LARGE_STEP))
    each = max(large - small, 0.0) / LARGE_STEP
    return Prefill(each, f"{_each(each)}, {_source_words(cost.source)}; --prefill-ms gives another.")


def _source_words(source: Source) -> str:
    return f"from {_FROM_COST[source]}"


def _each(seconds: float) -> str:
    return f"{duration(seconds)} per prompt token"


def _first_times(traces: Iterable[RequestTrace]) -> dict[str, _Pair]:
    """By prompt, of its first request: later ones find the prompt in the server's cache."""
    first: dict[str, RequestTrace] = {}
    for trace in traces:
        if trace.prompt_id not in first or trace.sent_ns < first[trace.prompt_id].sent_ns:
            first[trace.prompt_id] = trace
    return {name: pair for name, trace in first.items() if (pair := _pair(trace)) is not None}


def _pair(trace: RequestTrace) -> _Pair | None:
    usage = trace.usage or {}
    tokens = count(usage.get("prompt_tokens"))
    if tokens is None and trace.prompt_token_ids is not None:
        tokens = len(trace.prompt_token_ids)
    ttft_s = request_latency(trace).ttft_s if trace.error is None else None
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    computed = (tokens or 0) - (cached or 0)
    return (computed, ttft_s) if computed > 0 and ttft_s is not None else None


def _slope(pairs: list[_Pair]) -> float | None:
    """The median slope of all pairs (Theil 1950, Sen 1968), which a minority of odd prompts does not move.

    None where prompts are too few or too alike for one, or a longer prompt takes no longer.
    """
    lengths = [tokens for tokens, _ in pairs]
    if len(pairs) < LEAST_PROMPTS or max(lengths) < LEAST_SPREAD * min(lengths):
        return None
    slopes = [
        (later - sooner) / (longer - shorter)
        for (shorter, sooner), (longer, later) in combinations(pairs, 2)
        if longer != shorter
    ]
    found = median(slopes)
    return found if found > 0 else None
