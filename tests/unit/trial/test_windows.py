"""What a side's server counted in the times in which it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from breakeven.acceptance.page import Page
from breakeven.trace.records import RequestError, RequestTrace
from breakeven.trial.windows import Windows
from tests.unit.acceptance.pages import page, vllm
from tests.unit.report.builders import trace

TOKENS = 96
REPLIES = tuple(trace(f"p{n}", "c", 0.01, tokens=TOKENS) for n in range(3))


class Pages:
    """An asker whose server answers with these pages, one after the other."""

    def __init__(self, *pages: Page | None) -> None:
        self.pages = list(pages)
        self.asked = 0

    async def page(self) -> Page | None:
        self.asked += 1
        return self.pages.pop(0)


def at(requests: int, tokens: int | None = None, drafts: int = 0, started: float | None = None) -> Page:
    """After so many requests; of tokens as many as those replies have, unless it is said."""
    output = TOKENS * requests if tokens is None else tokens
    spec = vllm(started=started, drafts=drafts, draft_tokens=4 * drafts, accepted_tokens=2 * drafts)
    return page(spec, vllm(request_success=requests, generation_tokens=output))


def windows(*pages: Page | None) -> Windows:
    return Windows(cast(Any, Pages(*pages)))


async def counted(made: Windows, traces: Sequence[RequestTrace] = REPLIES) -> int | None:
    """Drafts of one window in which these were asked."""
    found = await made.close(await made.open(), traces)
    return None if found is None else found.drafts


async def test_a_window_counts_what_lies_between_its_pages() -> None:
    made = windows(at(5, drafts=100), at(8, drafts=130))
    assert await counted(made) == 30
    assert made.meter.counters is not None and made.meter.counters.drafts == 30
    assert made.meter.load is not None and made.meter.load.requests == 3
    assert (made.meter.asked.requests, made.meter.asked.output_tokens) == (3, 3 * TOKENS)


async def test_windows_add_up_in_the_meter_and_each_gives_its_own() -> None:
    made = windows(at(5, drafts=100), at(8, drafts=130), at(50, drafts=900), at(53, drafts=907))
    assert [await counted(made), await counted(made)] == [30, 7]
    assert made.meter.counters is not None and made.meter.counters.drafts == 37
    assert made.meter.asked.requests == 6 and made.meter.warnings == ()


@pytest.mark.parametrize("after", [at(10, drafts=130), at(8, tokens=9000, drafts=130)])
async def test_a_window_with_work_of_others_gives_no_counts_of_its_own(after: Page) -> None:
    """By requests, or by tokens alone: what is attached to a block must be of its requests. The meter keeps
    the sum, with its warning."""
    made = windows(at(5, drafts=100), after)
    assert await counted(made) is None
    assert made.meter.counters is not None and made.meter.counters.drafts == 30
    assert len(made.meter.warnings) == 1


async def test_the_end_of_a_request_may_be_counted_late_but_not_its_tokens() -> None:
    assert await counted(windows(at(5, drafts=100), at(7, tokens=8 * TOKENS, drafts=130))) == 30
    assert await counted(windows(at(5, drafts=100), at(8, tokens=7 * TOKENS, drafts=130))) is None


async def test_tokens_of_a_reply_that_failed_are_not_held_against_the_server() -> None:
    failed = replace(REPLIES[0], error=RequestError("StreamError", "broke off"))
    made = windows(at(5, drafts=100), at(8, tokens=5 * TOKENS + 250, drafts=130))
    assert await counted(made, (failed, *REPLIES[1:])) == 30


async def test_a_server_that_started_anew_within_a_window_gives_none() -> None:
    made = windows(at(5, drafts=100, started=1.0), at(8, drafts=130, started=2.0), at(8), at(11, drafts=9))
    assert await counted(made) is None and made.meter.resets == 1 and made.meter.counters is None
    assert await counted(made) == 9 and made.meter.counters is not None


async def test_a_page_that_is_gone_at_the_end_gives_none() -> None:
    made = windows(at(5, drafts=100), None)
    assert await counted(made) is None and made.meter.load is None


async def test_a_server_without_a_page_is_asked_for_it_once() -> None:
    made = windows(None)
    assert await counted(made) is None and await counted(made) is None
    assert cast(Any, made.asker).asked == 1 and made.meter.asked.requests == 0
