"""A reply without end is given up, and one that is only long is not."""

from __future__ import annotations

from typing import Any

import pytest

from breakeven.client.body import most_tokens
from breakeven.client.endpoint import Endpoint
from breakeven.client.limit import CHUNKS, MORE, REASONING, TOKENS, ReplyLimit
from breakeven.client.openai import AskFor, ask
from breakeven.client.stream import ReplyStream
from breakeven.client.transport import Pool
from breakeven.errors import StreamError
from breakeven.servers.fake import FakeServer, Script, llamacpp_script, vllm_script
from breakeven.trace.records import RequestTrace
from breakeven.workload.prompts import Prompt, Request, Sampling
from tests.unit.client.replies import ASKED, chunk, sse

MAX_TOKENS = 8
MOST_TOKENS = TOKENS * MAX_TOKENS + MORE
MOST_CHUNKS = CHUNKS * MAX_TOKENS + MORE
ENDLESS = {"ttft_s": 0.0, "tpot_s": 0.0001, "n_tokens": 20_000}
IGNORED = "the server ignores max_tokens: "


async def answered(script: Script, ask_for: AskFor) -> tuple[RequestTrace, int]:
    """By a server that never heard of max_tokens: the trace, and how often it was asked."""

    def direct(body: dict[str, Any], index: int) -> Script:
        del body["max_tokens"]
        return script

    async with FakeServer(direct) as server, Pool() as pool:
        endpoint, sampling = Endpoint(server.url, model="m"), Sampling(max_tokens=MAX_TOKENS)
        return await ask(pool, endpoint, ASKED, sampling, ask_for=ask_for), server.requests


@pytest.mark.parametrize(
    ("script", "ask_for", "most"),
    [
        (vllm_script(**ENDLESS), AskFor(usage_per_chunk=True), MOST_TOKENS),
        (vllm_script(**ENDLESS), AskFor(token_ids=True), MOST_TOKENS),
        (llamacpp_script(**ENDLESS), AskFor(usage=False), MOST_CHUNKS),
    ],
    ids=["running total", "ids", "chunks"],
)
async def test_a_reply_without_end_is_given_up_and_kept_as_failed(
    script: Script, ask_for: AskFor, most: int
) -> None:
    trace, asked = await answered(script, ask_for)
    assert asked == 1
    assert trace.error is not None and trace.error.kind == StreamError.__name__
    assert trace.error.message.startswith(IGNORED) and "where 8 tokens were asked for" in trace.error.message
    assert most - 5 < len(trace.events) < script.n_tokens / 2
    assert trace.text and trace.finish_reason is None and trace.max_tokens == MAX_TOKENS


def fed(*chunks: dict[str, Any], done: bool = False) -> None:
    stream = ReplyStream("http://h/v1/chat/completions", ReplyLimit(MAX_TOKENS))
    stream.head(200, {"content-type": "text/event-stream"})
    stream.feed(sse(*chunks, done=done), 1, 0)


def said(n_tokens: int, text: str = "x", finish: str | None = None) -> dict[str, Any]:
    """A chunk with a running total."""
    return chunk({"content": text}, finish, usage={"completion_tokens": n_tokens})


def test_chunks_without_counts() -> None:
    most = [chunk({"content": "x"})] * MOST_CHUNKS
    fed(*most)
    with pytest.raises(StreamError, match=f"{IGNORED}{MOST_CHUNKS + 1} chunks came"):
        fed(*most, most[0])
    fed(*most, most[0], done=True)
    with pytest.raises(StreamError, match=IGNORED):
        fed(*most, chunk({}, "stop"))


def test_tokens_that_are_known() -> None:
    fed(said(MOST_TOKENS))
    with pytest.raises(StreamError, match=f"{IGNORED}{MOST_TOKENS + 1} tokens came"):
        fed(said(MOST_TOKENS + 1))
    with pytest.raises(StreamError, match=IGNORED):
        fed(chunk({"content": "x"}, choice={"token_ids": list(range(MOST_TOKENS + 1))}))
    fed(said(MOST_TOKENS + 1, finish="stop"))


def test_totals_that_do_not_rise_limit_nothing() -> None:
    with pytest.raises(StreamError, match="chunks came"):
        fed(*[said(1)] * (MOST_CHUNKS + 1))


def test_empty_chunks_for_ever_are_no_reply_either() -> None:
    with pytest.raises(StreamError, match=IGNORED):
        fed(*[chunk({"content": ""})] * (MOST_CHUNKS + 1))


def test_reasoning_may_be_long_but_not_endless() -> None:
    thought = chunk({"reasoning_content": "x"}, usage={"completion_tokens": 1})
    fed(thought, said(MOST_TOKENS + REASONING))
    with pytest.raises(StreamError, match=IGNORED):
        fed(thought, said(MOST_TOKENS + REASONING + 1))


@pytest.mark.parametrize(
    ("extra", "most"),
    [
        ({}, 8),
        ({"max_tokens": 30}, 30),
        ({"max_tokens": None, "max_completion_tokens": 500}, 500),
        ({"max_completion_tokens": 500}, 500),
        ({"n_predict": 900}, 900),
        ({"n": 3}, 24),
        ({"max_tokens": None}, None),
        ({"n_predict": -1}, None),
        ({"max_tokens": "many"}, None),
        ({"n": "3"}, None),
    ],
)
def test_what_is_asked_for_is_the_limit(extra: dict[str, Any], most: int | None) -> None:
    assert most_tokens(ASKED, Sampling(MAX_TOKENS, extra=extra)) == most


def test_a_prompt_has_a_limit_of_its_own() -> None:
    assert most_tokens(Request(Prompt("p", "c", text="x", max_tokens=3)), Sampling(MAX_TOKENS)) == 3
