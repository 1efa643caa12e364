"""One set of counts out of two sources that saw the same requests: the replies themselves and /metrics."""

from __future__ import annotations

from dataclasses import replace

from breakeven.acceptance.counters import SpecCounters


def complete(
    reply: SpecCounters | None, page: SpecCounters | None, output_tokens: int | None = None
) -> SpecCounters | None:
    """The reply's counts, with what only the page knows (drafts, positions) filled in where the two agree.

    They disagree when others used the server at the same time: then the page is left out, for the reply
    speaks of this request alone. Where only the page counts, the decode steps follow from the request's
    `output_tokens`: N − 1 − accepted, as the prefill gives the first token.
    """
    if page is None:
        return reply
    if reply is None:
        if output_tokens is None or page.accepted_tokens is None:
            return page
        return replace(page, steps=max(output_tokens - 1 - page.accepted_tokens, page.drafts or 0))
    if (reply.drafted_tokens, reply.accepted_tokens) != (page.drafted_tokens, page.accepted_tokens):
        return reply
    source = reply.source if page.source in reply.source else f"{reply.source}, {page.source}"
    return replace(
        reply,
        drafts=reply.drafts if reply.drafts is not None else page.drafts,
        accepted_per_position=reply.accepted_per_position or page.accepted_per_position,
        source=source,
    )


def total(counts: list[SpecCounters]) -> SpecCounters | None:
    """The sum, in which a count is known only if every part knows it; None for no parts."""
    if not counts:
        return None
    result = counts[0]
    for part in counts[1:]:
        result += part
    return result
