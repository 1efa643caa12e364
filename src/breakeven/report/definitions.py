"""Every term that a report uses, and what it means: each number stands one step from its definition."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven import latency
from breakeven.acceptance import counters

_TITLES = {
    "ttft": "TTFT",
    "ttft_content": "TTFT to content",
    "tpot": "TPOT",
    "e2e": "End to end",
    "decode_tokens_per_s": "Decode speed",
    "output_tokens_per_s": "Output speed",
    "tokens_per_chunk": "Tokens per chunk",
    "truncated_in_reasoning": "Truncated in reasoning",
    "speedup": "Speedup",
    "percentiles": "Percentiles",
    "content_tokens": "Content tokens",
    "acceptance_rate": "Acceptance rate",
    "mean_acceptance_length": "Mean acceptance length",
    "tokens_per_step": "Tokens per step",
    "draft_share": "Draft share",
}

_REPORT_TERMS = {
    "tokens_per_s": ("Tokens per second", "1 / TPOT, for one prompt the geometric mean over its repeats"),
    "change": ("Change", "speedup − 1 in per cent: +8.0 % is 1.08 times the tokens per second"),
    "interval": (
        "Interval",
        "of the speedup: bootstrap over prompts and over repeats; of one prompt or category: "
        "for these very prompts, from the scatter of repeats, pooled over the prompts",
    ),
    "floor": ("Floor", "a change smaller than this share counts as none"),
    "verdict": (
        "Verdict",
        "faster or slower: the interval excludes 1 and the estimate reaches the floor; same: the whole "
        "interval lies within the floor; undecided: anything else; refused: the two sides cannot be compared",
    ),
    "lossless": (
        "Identical replies",
        "pairs of greedy replies to one prompt that are the same on both sides, of those compared; "
        "the first difference is counted from 0",
    ),
    "drift": (
        "Drift",
        "the baseline's first block against its last: TPOT first / last, below 1 if it became slower",
    ),
    "degenerate": ("Degenerate reply", "a reply that ends in a short loop: it inflates acceptance"),
    "stopped_after": ("Stopped after", "repeats of every prompt on each side when the trial ended"),
    "reload": (
        "Reload",
        "from the start of the process to the first real completion; absent if it was running already, "
        "or was never ready",
    ),
    "read": ("Read", "what one read from the network held: tokens of one read arrived together"),
}

_REPLAY_TERMS = {
    "emitted_tokens": (
        "Emitted tokens",
        "output tokens that came out of decode steps; a first token that the prefill gives is none",
    ),
    "drafted_per_step": ("Drafted per step", "drafted tokens / all decode steps"),
    "accepted_per_step": ("Accepted per step", "accepted draft tokens / all decode steps"),
    "accepted_per_position": (
        "Accepted at a position",
        "drafts of which at least so many tokens were accepted; its share is of the drafts that were so long",
    ),
    "accepted_lengths": (
        "Accepted lengths",
        "of each output token: the draft tokens accepted if the context ended before it, cut at the end of "
        "the record",
    ),
    "deciles": ("Tenth of the output", "steps by the tenth of their request's output in which they begin"),
    "parts": (
        "Reasoning and answer",
        "steps by which of the two they begin in, of the requests whose record tells them apart",
    ),
    "warm_up": (
        "Warm-up",
        "tokens per step of the first tenth of the requests and of the rest, in the record's order, for a "
        "drafter that learns from one request for the next",
    ),
    "pareto": (
        "Pareto front",
        "no other setting is better in one of tokens per step and acceptance rate and at least as good in "
        "the other; of equals the first",
    ),
}


@dataclass(frozen=True, slots=True)
class Definition:
    key: str
    title: str
    text: str


def _all() -> tuple[Definition, ...]:
    formulas = {**latency.DEFINITIONS, **counters.DEFINITIONS}
    measured = [Definition(key, _TITLES.get(key, key), text) for key, text in formulas.items()]
    reported = [Definition(key, title, text) for key, (title, text) in _REPORT_TERMS.items()]
    return tuple(measured + reported)


DEFINITIONS: tuple[Definition, ...] = _all()
"""Measured terms first, in the order of the modules that define them."""

REPLAY_DEFINITIONS: tuple[Definition, ...] = (
    *(definition for definition in DEFINITIONS if definition.key in counters.DEFINITIONS),
    *(Definition(key, title, text) for key, (title, text) in _REPLAY_TERMS.items()),
)
"""Terms of a replay and of a sweep, those of acceptance first."""


def texts(definitions: tuple[Definition, ...] = DEFINITIONS) -> dict[str, str]:
    """Definition by key, as the JSON output carries it."""
    return {definition.key: definition.text for definition in definitions}
