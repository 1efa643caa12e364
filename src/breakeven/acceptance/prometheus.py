"""A server's /metrics page → Page, and what was counted between two readings of it."""

from __future__ import annotations

import re
from dataclasses import replace

from breakeven.acceptance import load
from breakeven.acceptance.combine import total
from breakeven.acceptance.counters import SpecCounters, fell, possible
from breakeven.acceptance.exposition import parse
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages import llamacpp, sglang, tensorrt, tgi, vllm
from breakeven.acceptance.pages.ranks import TOO_MANY, are_too_many

_PAGES = (vllm, sglang, llamacpp, tensorrt, tgi)
SOURCES: dict[str, str] = {page.ENGINE: page.SOURCE for page in _PAGES}
"""Source of the counts of a page, by engine."""
_STARTED = re.compile(r"^process_start_time_seconds(?:\{[^}\n]{0,1000}\})? (\S{1,100})", re.MULTILINE)


def read_page(text: str) -> Page | None:
    """What a page says of speculation and of the server's load; None where it is of no engine that is known.

    Never raises. Counts are summed over engines and data-parallel ranks. Only the lines that matter are taken
    apart: a whole page, which may be megabytes, would hold up the event loop.
    """
    if text[:100].lstrip().startswith("["):
        return tensorrt.read_iterations(text)
    for engine in _PAGES:
        if f"\n{engine.PREFIX}" in text or text.startswith(engine.PREFIX):
            samples = parse(text, engine.PREFIX, engine.NAMES)
            if are_too_many(samples):
                return Page(engine.ENGINE, SpecCounters(source=engine.SOURCE), Load(), notes=(TOO_MANY,))
            page: Page = engine.read(samples)
            return replace(page, started=started(text))
    return None


def started(text: str) -> str | None:
    """When the process behind a page started, by its own clock, as it writes it; None where it does not."""
    match = _STARTED.search(text)
    return match.group(1) if match else None


def between(before: Page | None, after: Page | None) -> SpecCounters | None:
    """What was counted from `before` to `after`; None where either counts nothing, or after a reset (see
    `is_reset`): no negative count is ever returned. Of several ranks, those that both pages know.

    Lifetime counts and ratios of what went before do not enter (sglang#16694).
    """
    if (
        before is None
        or after is None
        or before.spec is None
        or after.spec is None
        or is_reset(before, after)
    ):
        return None
    ranks = before.by_rank.keys() & after.by_rank.keys()
    counted = total(_since(before.by_rank[rank], after.by_rank[rank]) for rank in ranks)
    return None if counted is None else possible(counted)


def is_reset(before: Page, after: Page) -> bool:
    """Whether the server started anew between the pages: it says so, or a count fell or is gone."""
    if before.engine != after.engine or (before.by_rank and after.spec is None):
        return True
    if before.started is not None and after.started is not None and before.started != after.started:
        return True
    ranks = before.by_rank.keys() & after.by_rank.keys()
    return load.fell(before.load, after.load) or any(
        fell(before.by_rank[rank], after.by_rank[rank]) for rank in ranks
    )


def _since(before: SpecCounters, after: SpecCounters) -> SpecCounters:
    """Steps never fewer than drafts: a step whose request was cancelled may be counted as a draft only."""
    part = after - before
    if part.steps is None or part.drafts is None:
        return part
    return replace(part, steps=max(part.steps, part.drafts))
