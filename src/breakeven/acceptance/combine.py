"""Counts put together: of several parts, or of replies and /metrics, which saw the same requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.steps import emitted_of, steps_of

Part = TypeVar("Part", SpecCounters, Load)


def complete(
    reply: SpecCounters | None,
    page: SpecCounters | None,
    output_tokens: int | None = None,
    requests: int = 1,
) -> SpecCounters | None:
    """The reply's counts, and what only the page knows (drafts, positions, steps) where they agree.

    They disagree when others used the server at the same time: then the page is left out, for the reply
    speaks of this request alone. So it is where steps or drafts are more than `output_tokens`, for each emits
    one at least, and the first token is of none. Where only the page counts, and not the decode steps, those
    follow from the `output_tokens` of so many requests (see `steps_of`).
    """
    if page is None or _is_more(page, output_tokens):
        return reply
    if reply is None:
        return _with_steps(page, output_tokens, requests)
    if (reply.drafted_tokens, reply.accepted_tokens) != (page.drafted_tokens, page.accepted_tokens):
        return reply
    source = reply.source if page.source in reply.source else f"{reply.source}, {page.source}"
    return replace(
        reply,
        steps=page.steps if page.steps is not None else reply.steps,
        drafts=reply.drafts if reply.drafts is not None else page.drafts,
        accepted_per_position=reply.accepted_per_position or page.accepted_per_position,
        source=source,
    )


def _is_more(page: SpecCounters, output_tokens: int | None) -> bool:
    """Whether the page counts steps of others too."""
    if output_tokens is None:
        return False
    return max(page.steps or 0, page.drafts or 0) > max(output_tokens - 1, 0)


def _with_steps(page: SpecCounters, output_tokens: int | None, requests: int) -> SpecCounters:
    emitted = emitted_of(output_tokens, requests)
    steps = steps_of(emitted, page.accepted_tokens, page.drafts)
    if page.steps is not None or steps is None:
        return page
    return replace(page, steps=steps, emitted_tokens=emitted)


def total(parts: Iterable[Part | None]) -> Part | None:
    """The sum of the parts that are not None. A count is known only if each of them knows it."""
    result: Part | None = None
    for part in parts:
        if part is not None:
            result = part if result is None else result + part
    return result
