"""Whether greedy replies are the same on both sides, and where they first differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import ne
from typing import Literal

from breakeven.compare.pairs import Replies
from breakeven.compare.records import Divergence, Lossless
from breakeven.trace.records import RequestTrace

UNANSWERED = "no request was answered on both sides"


def lossless(baseline: Replies, candidate: Replies, temperature: float | None) -> Lossless:
    """Compare the replies that both sides gave. `temperature` is what was asked; None is the server's own."""
    if temperature is None:
        return Lossless(0, 0, None, "the temperature was left to the server: replies may differ by chance")
    if temperature > 0:
        return Lossless(0, 0, None, f"temperature {temperature:g}: replies differ by chance")
    both = [
        (reply.trace, candidate[key].trace)
        for key, reply in baseline.items()
        if reply.trace.error is None and key in candidate and candidate[key].trace.error is None
    ]
    if not both:
        return Lossless(0, 0, None, UNANSWERED)
    found = [divergence for pair in both if (divergence := diverge(*pair)) is not None]
    earliest = min(found, key=lambda divergence: divergence.position, default=None)
    return Lossless(len(both) - len(found), len(both), earliest)


def _characters(trace: RequestTrace) -> str:
    """The reply's parts, each closed but for content: reasoning is not the same as an equal answer."""
    reasoning, tools = (f"{part}\0" if part else "" for part in (trace.reasoning, trace.tool_calls))
    return reasoning + trace.text + tools


def diverge(a: RequestTrace, b: RequestTrace) -> Divergence | None:
    """Where two replies first differ: by token ids if both have them, else by character, in the order
    reasoning, content, tool calls. A reply that goes on where the other ends differs from there. None if
    they are the same.
    """
    unit: Literal["token", "character"] = "token"
    x: Sequence[object] | None = a.output_token_ids
    y: Sequence[object] | None = b.output_token_ids
    if x is None or y is None:
        unit = "character"
        x, y = _characters(a), _characters(b)
    if x == y:
        return None
    position = next(compress(count(), map(ne, x, y)), min(len(x), len(y)))
    return Divergence(a.prompt_id, a.repeat, unit, position)
