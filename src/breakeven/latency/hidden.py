"""Tokens that a reply counts but never showed: a speed over the visible window would be wrong.

Some servers think behind the stream, or show a summary of the thought. The first visible chunk then comes
late, and N − n_first counts tokens that were decoded before it. Each rule below gives the reason in words.
"""

from __future__ import annotations

from breakeven.latency.tokens import Total, at_least, usage_reasoning
from breakeven.trace.records import Event, Kind, RequestTrace

HIDDEN_REASONING = "hidden reasoning"
SLACK_TOKENS = 16
"""Tags, separators and end-of-sequence tokens leave no visible byte; a reply has a handful of them."""
EMPTY_THOUGHT_TOKENS = 4
"""A switched-off thought is still an opening tag, a blank line, a closing tag and a blank line."""
UNTIMED_SHARE = 0.02
"""Tokens outside of every chunk bias TPOT by at most their share; a verdict reports no change below 2 %."""
BUNDLE = 3
"""Reasoning chunks that seem to hold this many tokens, beside content chunks of one, hold a summary."""

LATE_TTFT_S = 5.0
LATE_TTFT_TPOTS = 100
"""A first token after 5 s and 100 decode steps follows a long prompt, or a thought that was not shown."""
LATE_TTFT = (
    "the first token came late (over 5 s and over 100 times TPOT) and no reasoning was seen: "
    "either the prompt is very long, or reasoning may not be streamed or timed"
)


def hidden_tokens(trace: RequestTrace, n: Total) -> str | None:
    """Why the visible stream cannot hold all N tokens, or None if it can."""
    if n.tokens is None or n.source == "chunks":
        return None
    unseen = _unseen_reasoning(trace, n.tokens)
    if all(event.n_tokens is not None for event in trace.events if event.kind is not Kind.END):
        return unseen or _untimed(n.tokens, trace.events)
    return unseen or _fewer_bytes_than_tokens(trace, n.tokens) or _summary(trace, n.tokens)


def _untimed(n_tokens: int, events: tuple[Event, ...]) -> str | None:
    """With the size of each chunk known, what is missing from their sum was never streamed."""
    missing = n_tokens - at_least(events)
    if not events or not _many(missing, n_tokens):
        return None
    return f"{HIDDEN_REASONING}: {missing} of {n_tokens} tokens came in no chunk"


def _unseen_reasoning(trace: RequestTrace, n_tokens: int) -> str | None:
    stated = usage_reasoning(trace.usage) or 0
    if not stated or not _many(stated - _silent(trace), n_tokens):
        return None
    if trace.reasoning or any(event.kind is Kind.REASONING for event in trace.events):
        return None
    return f"{HIDDEN_REASONING}: usage counts {stated} tokens of it and none were streamed"


def _many(tokens: int, n_tokens: int) -> bool:
    return tokens > max(EMPTY_THOUGHT_TOKENS, UNTIMED_SHARE * n_tokens)


def _silent(trace: RequestTrace) -> int:
    return at_least(event for event in trace.events if event.kind is Kind.SILENT)


def _fewer_bytes_than_tokens(trace: RequestTrace, n_tokens: int) -> str | None:
    """A token that shows has at least one byte of UTF-8."""
    silent = _silent(trace)
    reasoning = _bytes(trace.reasoning)
    visible = reasoning + _bytes(trace.text) + _bytes(trace.tool_calls)
    stated = min(usage_reasoning(trace.usage) or 0, n_tokens)
    if n_tokens - silent > visible + SLACK_TOKENS:
        return f"{HIDDEN_REASONING}: {n_tokens} tokens against {visible} visible bytes"
    if stated - silent > reasoning + SLACK_TOKENS:
        return f"{HIDDEN_REASONING}: {stated} reasoning tokens against {reasoning} visible bytes of it"
    return None


def _summary(trace: RequestTrace, n_tokens: int) -> str | None:
    """Where content comes one token per chunk, a reasoning chunk that counts several is a summary."""
    stated = usage_reasoning(trace.usage)
    if stated is None or stated <= SLACK_TOKENS:
        return None
    reasoning = sum(event.kind is Kind.REASONING for event in trace.events)
    content = sum(event.kind in (Kind.CONTENT, Kind.TOOL) for event in trace.events)
    if content < SLACK_TOKENS or not content <= n_tokens - stated <= content + 1:
        return None
    if stated < BUNDLE * reasoning:
        return None
    return f"{HIDDEN_REASONING}: {stated} reasoning tokens against {reasoning} chunks of it"


def late_first_token(trace: RequestTrace, ttft_s: float | None, tpot_s: float | None) -> str | None:
    """A warning where the time to the first token smells of reasoning that was not shown."""
    if ttft_s is None or tpot_s is None:
        return None
    if ttft_s <= LATE_TTFT_S or ttft_s <= LATE_TTFT_TPOTS * tpot_s:
        return None
    seen = trace.reasoning or any(event.kind is Kind.REASONING for event in trace.events)
    return None if seen else LATE_TTFT


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
