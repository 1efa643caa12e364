"""What the fake says, against what real engines were recorded saying (tests/golden)."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.servers.fake import Script, Speculation, llamacpp_script, timeline, vllm_script
from breakeven.servers.fake.chunks import chunks, whole
from breakeven.servers.fake.reply import resolve
from breakeven.servers.fake.script import LLAMACPP, OPENAI, VLLM

GOLDEN = Path(__file__).parents[2] / "golden"
USAGE = {"include_usage": True}


def body(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hello"}], "stream": True, **fields}


def said(script: Script, chat: bool = True, **fields: Any) -> list[dict[str, Any]]:
    reply = resolve(script, body(**fields), chat=chat, index=0, model="m")
    times = timeline(script, reply.n_tokens, reply.key)
    return [orjson.loads(chunk.payload) for chunk in chunks(reply, times)]


def recorded(name: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / name).read_bytes().split(b"\n")
    return [orjson.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def shape(value: Any, path: str = "") -> set[str]:
    """Every key by its path; the first entry of a list stands for all."""
    if isinstance(value, dict):
        return {path}.union(*(shape(part, f"{path}.{key}") for key, part in value.items()))
    if isinstance(value, list) and value:
        return {path} | shape(value[0], f"{path}[]")
    return {path}


def shapes(stream: list[dict[str, Any]]) -> list[set[str]]:
    """The kinds of chunk in the order they came, repeats folded."""
    return [found for found, _ in groupby(map(shape, stream))]


def test_llamacpp_reasoning_has_the_recorded_shape():
    mine = said(llamacpp_script(n_tokens=17, reasoning_tokens=6))
    assert shapes(mine) == shapes(recorded("llamacpp-chat-reasoning.sse"))


def test_llamacpp_speculation_has_the_recorded_shape():
    mine = said(llamacpp_script(n_tokens=40, speculation=Speculation(3, 0.7)), stream_options=USAGE)
    assert shapes(mine) == shapes(recorded("llamacpp-chat-speculation.sse"))


def test_vllm_token_ids_have_the_recorded_shape():
    options = {"include_usage": True, "continuous_usage_stats": True}
    mine = said(vllm_script(), stream_options=options, return_token_ids=True, max_tokens=6)
    theirs = recorded("vllm-chat-token-ids.sse")
    assert [keys - {".usage.completion_tokens_details"} for keys in shapes(theirs)[:-1]] == shapes(mine)[:-1]
    assert mine[-1]["choices"] == theirs[-1]["choices"] == []


def test_vllm_speculation_metrics_have_the_recorded_shape():
    script = vllm_script(timings=True, speculation=Speculation(5, 0.9), reasoning_tokens=32, n_tokens=64)
    mine = said(script, stream_options=USAGE, max_tokens=32, return_token_ids=True)[-1]["metrics"]
    theirs = recorded("vllm-chat-reasoning.sse")[-1]["metrics"]
    assert shape(mine) == shape(theirs)
    speculation = mine["speculative_decoding"]
    assert sum(speculation["per_step_accepted"]) == speculation["num_accepted_draft_tokens"]
    assert sum(speculation["acceptance_histogram"]) == speculation["num_spec_steps"]


scripts = st.builds(
    Script,
    n_tokens=st.integers(1, 60),
    tokens_per_chunk=st.integers(1, 7),
    first_chunk_tokens=st.none() | st.integers(1, 9),
    reasoning_tokens=st.integers(0, 20),
    reasoning_key=st.sampled_from([None, "reasoning", "reasoning_content", "inline"]),
    think_pieces=st.integers(1, 3),
    tool_tokens=st.integers(0, 5),
    hidden_reasoning_tokens=st.integers(0, 9),
    eos=st.booleans(),
    hold_every=st.none() | st.integers(2, 5),
    usage=st.sampled_from(["asked", "always", "finish_chunk", "every_chunk"]),
    dialect=st.sampled_from([VLLM, LLAMACPP, OPENAI]),
    speculation=st.none() | st.just(Speculation(3, 0.6)),
)


@settings(deadline=None, max_examples=60)
@given(scripts, st.none() | st.integers(1, 70))
def test_usage_ids_and_chunks_tell_one_story(script: Script, max_tokens: int | None):
    stream = said(script, stream_options=USAGE, max_tokens=max_tokens, return_token_ids=True)
    cut = max_tokens is not None and max_tokens < script.n_tokens
    n_tokens = max_tokens if cut else script.n_tokens
    usage = [chunk["usage"] for chunk in stream if chunk.get("usage")][-1]
    assert usage["completion_tokens"] == n_tokens + script.hidden_reasoning_tokens
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    choices = [choice for chunk in stream for choice in chunk["choices"]]
    reasons = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    assert reasons == ["length" if cut else "tool_calls" if script.tool_tokens else "stop"]
    if script.dialect is VLLM:
        assert sum(len(choice.get("token_ids") or ()) for choice in choices) == n_tokens


@settings(deadline=None, max_examples=60)
@given(scripts)
def test_chunks_count_every_token_and_are_in_order(script: Script):
    reply = resolve(script, body(), chat=True, index=0, model="m")
    spoken = chunks(reply, timeline(script, reply.n_tokens, reply.key))
    assert sum(chunk.n_tokens for chunk in spoken) == script.n_tokens
    dues = [chunk.due_s for chunk in spoken]
    assert dues == sorted(dues)


def test_kinds_follow_the_plan():
    script = Script(n_tokens=6, reasoning_tokens=2, tool_tokens=1, null_content=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in said(script)]
    assert [sorted(delta) for delta in deltas] == [
        ["content", "role"],
        *[["content", "reasoning"]] * 2,
        *[["content"]] * 3,
        ["tool_calls"],
    ]
    assert deltas[1]["content"] is None


def test_inline_tags_may_be_cut_over_chunks():
    script = Script(n_tokens=20, reasoning_tokens=10, reasoning_key="inline", think_pieces=3)
    deltas = [chunk["choices"][0]["delta"]["content"] for chunk in said(script)]
    assert deltas[1:4] == ["<th", "ink", ">"]
    assert "".join(deltas[8:11]) == "</think>"


def test_a_bundle_comes_when_its_last_token_is_ready():
    script = Script(ttft_s=0.1, tpot_s=0.01, n_tokens=11, tokens_per_chunk=4, first_chunk_tokens=2)
    reply = resolve(script, body(), chat=True, index=0, model="m")
    spoken = [c for c in chunks(reply, timeline(script, 11, reply.key)) if c.n_tokens]
    assert [chunk.n_tokens for chunk in spoken] == [2, 4, 4, 1]
    assert [chunk.due_s for chunk in spoken] == pytest.approx([0.1, 0.14, 0.18, 0.19])


def test_lies():
    lies = (("completion_tokens", 23870), ("reasoning_tokens", 23871))
    usage = said(Script(usage="always", usage_lies=lies))[-1]["usage"]
    assert usage["completion_tokens"] == 23870
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 23871
    timings = said(llamacpp_script(timings_lies=(("predicted_per_second", 0.0),)))[-1]["timings"]
    assert timings["predicted_per_second"] == 0.0
    assert timings["predicted_ms"] == pytest.approx(127 * 20)


def test_an_error_takes_the_place_of_its_token():
    stream = said(Script(n_tokens=9, error_at=4, error_message="out of memory"))
    assert len(stream) == 1 + 4 + 1
    assert stream[-1]["error"]["message"] == "out of memory"


@pytest.mark.parametrize("form", ["object", "text", "finish_reason", "unfinished"])
def test_an_error_as_a_token_claims_success(form: str):
    stream = said(Script(error_as_token=form, error_message="out of memory"))
    assert "out of memory" in stream[1]["choices"][0]["delta"]["content"]
    assert stream[-1]["usage"]["completion_tokens"] == 1
    assert not any("error" in chunk for chunk in stream)


def test_greedy_replies_repeat_and_sampled_ones_do_not():
    def text(index: int, **fields: Any) -> bytes:
        return resolve(Script(), body(**fields), chat=True, index=index, model="m").key

    assert text(0, temperature=0) == text(1)
    assert text(0, temperature=0.7) != text(1, temperature=0.7)
    assert text(0, temperature=0.7, seed=1) == text(1, temperature=0.7, seed=1)


def test_ignore_eos_stretches_a_reply():
    stream = said(Script(n_tokens=5, eos=True), ignore_eos=True, max_tokens=50, stream_options=USAGE)
    assert stream[-1]["usage"]["completion_tokens"] == 50
    assert stream[-2]["choices"][0]["finish_reason"] == "length"


def test_a_text_completion_has_text_and_no_role():
    stream = said(Script(n_tokens=3, reasoning_tokens=2), chat=False)
    assert all(chunk["object"] == "text_completion" for chunk in stream)
    assert all(chunk["choices"][0]["text"] for chunk in stream)


@settings(deadline=None, max_examples=60)
@given(scripts)
def test_whole_and_streamed_replies_say_the_same(script: Script):
    script = replace(script, null_content=True)
    reply = resolve(script, body(), chat=True, index=0, model="m")
    times = timeline(script, reply.n_tokens, reply.key)
    message = orjson.loads(whole(reply, times))["choices"][0]["message"]
    deltas = [choice["delta"] for chunk in said(script) for choice in chunk["choices"]]
    for key in ("content", "reasoning", "reasoning_content"):
        assert "".join(delta.get(key) or "" for delta in deltas) == (message.get(key) or "")
