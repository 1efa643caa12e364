"""Chunks: a reply and its timeline → the JSON objects of the stream, each with the time it is due."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from breakeven.servers.fake.presets import error_body
from breakeven.servers.fake.reply import Reply
from breakeven.servers.fake.timeline import Timeline
from breakeven.servers.fake.timings import server_timings
from breakeven.trace.records import Kind

REQUEST_ID = "chatcmpl-000000000000000"
"""Stands for the request's own id until the bytes are written, so that equal replies are rendered once."""

CREATED = 1_750_000_000
CACHED_TOKENS = 1024
"""Longer replies are rendered anew each time, to bound what the caches hold."""


class Chunk(NamedTuple):
    """One event of the stream."""

    due_s: float
    payload: bytes
    n_tokens: int


def chunks(reply: Reply, timeline: Timeline) -> list[Chunk]:
    """Every chunk of the reply, up to where its script lets it fail."""
    if reply.script.error_as_token:
        return _error_as_token(reply, timeline)
    dues, sizes = _layout(reply, timeline)
    payloads = _rendered(reply, sizes) if reply.n_tokens <= CACHED_TOKENS else _render(reply, sizes)
    spoken = [*_role(reply, timeline), *map(Chunk, dues, payloads, sizes)]
    if reply.script.error_at is not None:
        return _with_error(spoken, reply)
    return [*spoken, *_closing(reply, timeline)]


def whole(reply: Reply, timeline: Timeline) -> bytes:
    """The JSON object of a reply that is not streamed."""
    _, texts = reply.tokens()
    said = {kind: "".join(t for i, t in enumerate(texts) if reply.kind(i) == kind) for kind in Kind}
    choice: dict[str, Any] = {"index": 0, "finish_reason": reply.finish_reason}
    choice |= {"message": _message(reply, said)} if reply.chat else {"text": said[Kind.CONTENT]}
    extra = {"usage": reply.reported_usage(), **server_timings(reply, timeline)}
    return orjson.dumps(_envelope(reply, [choice], extra) | {"object": _object(reply).removesuffix(".chunk")})


def _message(reply: Reply, said: dict[Kind, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said[Kind.CONTENT]}
    if reply.reasoning_key == "inline":
        message["content"] = said[Kind.REASONING] + said[Kind.CONTENT]
    elif said[Kind.REASONING]:
        message[reply.reasoning_key] = said[Kind.REASONING]
    if said[Kind.TOOL]:
        message |= _tool_delta(reply, reply.first_tool_token, said[Kind.TOOL])
    return message


def _layout(reply: Reply, timeline: Timeline) -> tuple[list[float], tuple[int, ...]]:
    """When text chunks are due and how many tokens each carries. A closing EOS is in none."""
    dues: list[float] = []
    sizes: list[int] = []
    one_by_one = _one_by_one(reply)
    changes = reply.kind_bounds
    for due_s, start, stop in _ready(reply, timeline):
        bounds = (start, *[change for change in changes if start < change < stop], stop)
        pieces = [1] * (stop - start) if one_by_one else [last - first for first, last in pairwise(bounds)]
        sizes += pieces
        dues += [due_s] * len(pieces)
    return dues, tuple(sizes)


def _one_by_one(reply: Reply) -> bool:
    script = reply.script
    bundles = script.tokens_per_chunk > 1 or (script.first_chunk_tokens or 1) > 1
    return not bundles and not script.dialect.chunk_per_step


def _ready(reply: Reply, timeline: Timeline) -> Iterator[tuple[float, int, int]]:
    """(due, first token, end) of each bundle of at least tokens_per_chunk tokens, the last one excepted."""
    start = done = 0
    end = reply.text_tokens
    wanted = reply.script.n_first
    for due_s, n_tokens in zip(timeline.due_s, timeline.tokens, strict=True):
        done = min(done + n_tokens, end)
        if done > start and (done - start >= wanted or done == end):
            yield due_s, start, done
            start = done
            wanted = reply.script.tokens_per_chunk


def _role(reply: Reply, timeline: Timeline) -> list[Chunk]:
    script = reply.script
    if not (reply.chat and script.role_chunk):
        return []
    due_s = timeline.due_s[0] if script.role_at_s is None else script.role_at_s
    delta = {"role": "assistant", "content": script.dialect.role_content}
    choice = _choice(reply, delta, None, [])
    choice.pop("token_ids", None)
    extra: dict[str, Any] = {"usage": reply.usage(0)} if reply.chunk_usage else {}
    if reply.token_ids:
        extra |= {"prompt_token_ids": [*range(5, 5 + reply.prompt_tokens)], "prompt_text": None}
    return [Chunk(due_s, _dump(reply, [choice], extra), 0)]


@lru_cache(maxsize=256)
def _rendered(reply: Reply, sizes: tuple[int, ...]) -> list[bytes]:
    return _render(reply, sizes)


def _render(reply: Reply, sizes: tuple[int, ...]) -> list[bytes]:
    ids, texts = reply.tokens()
    payloads = []
    start = 0
    for size in sizes:
        stop = start + size
        delta = _delta(reply, start, "".join(texts[start:stop]))
        finish = reply.finish_reason if stop == reply.n_tokens and _finish_rides(reply) else None
        choice = _choice(reply, delta, finish, ids[start:stop])
        payloads.append(_dump(reply, [choice], {"usage": reply.usage(stop)} if reply.chunk_usage else {}))
        start = stop
    return payloads


def _finish_rides(reply: Reply) -> bool:
    own_chunk = reply.has_eos or reply.script.usage == "finish_chunk"
    return reply.script.dialect.finish_in_last_chunk and not own_chunk


def _delta(reply: Reply, token: int, text: str) -> dict[str, Any]:
    kind = reply.kind(token)
    if kind == Kind.TOOL:
        return _tool_delta(reply, token, text)
    if kind == Kind.CONTENT or reply.reasoning_key == "inline":
        return {"content": text}
    delta: dict[str, Any] = {reply.reasoning_key: text}
    return delta | {"content": None} if reply.script.null_content else delta


def _tool_delta(reply: Reply, token: int, text: str) -> dict[str, Any]:
    call: dict[str, Any] = {"index": 0, "function": {"arguments": text}}
    if token == 0 or reply.kind(token - 1) != Kind.TOOL:
        call |= {"id": "call_0", "type": "function", "function": {"name": "lookup", "arguments": text}}
    return {"tool_calls": [call]}


def _choice(reply: Reply, delta: dict[str, Any], finish: str | None, ids: list[int]) -> dict[str, Any]:
    said: dict[str, Any] = {"delta": delta} if reply.chat else {"text": delta.get("content") or ""}
    if reply.script.dialect.name == "llamacpp":
        return {"finish_reason": finish, "index": 0, **said}
    choice = {"index": 0, **said, "logprobs": None, "finish_reason": finish}
    if finish:
        choice["stop_reason"] = None
    if reply.script.dialect.has_token_ids:
        choice["token_ids"] = ids if reply.token_ids else None
    return choice


def _closing(reply: Reply, timeline: Timeline) -> Iterator[Chunk]:
    """The finish chunk, if it is one of its own, and the usage chunk."""
    due_s = timeline.due_s[-1]
    timings = server_timings(reply, timeline)
    on_finish = timings if not reply.final_usage else {}
    if reply.script.usage == "finish_chunk":
        on_finish = {"usage": reply.reported_usage(), **timings}
    if not _finish_rides(reply):
        yield Chunk(due_s, _finish(reply, on_finish), int(reply.has_eos))
    if reply.final_usage:
        extra = {"usage": reply.reported_usage(), **timings}
        yield Chunk(due_s, _dump(reply, [], extra), 0)


def _finish(reply: Reply, extra: dict[str, Any]) -> bytes:
    empty = {"content": ""} if reply.script.dialect.name == "vllm" else {}
    ids = reply.tokens()[0][-1:] if reply.has_eos else []
    if reply.chunk_usage:
        extra = {"usage": reply.usage(reply.n_tokens), **extra}
    return _dump(reply, [_choice(reply, empty, reply.finish_reason, ids)], extra)


def _error_as_token(reply: Reply, timeline: Timeline) -> list[Chunk]:
    form = reply.script.error_as_token
    message = reply.script.error_message
    text = error_body(500, message).decode() if form == "object" else f"Internal server error: {message}"
    finish = {"finish_reason": "error", "unfinished": None}.get(form, "stop")
    due_s = timeline.due_s[0]
    lone = Chunk(due_s, _dump(reply, [_choice(reply, {"content": text}, finish, [])], {}), 1)
    usage = Chunk(due_s, _dump(reply, [], {"usage": reply.usage(1)}), 0)
    return [*_role(reply, timeline), lone, usage]


def _with_error(spoken: list[Chunk], reply: Reply) -> list[Chunk]:
    """The chunks before the one with token `error_at`, then the error in its place."""
    kept: list[Chunk] = []
    done = 0
    for chunk in spoken:
        done += chunk.n_tokens
        if done > (reply.script.error_at or 0):
            return [*kept, Chunk(chunk.due_s, error_body(500, reply.script.error_message), 0)]
        kept.append(chunk)
    return kept


def _object(reply: Reply) -> str:
    return "chat.completion.chunk" if reply.chat else "text_completion"


def _envelope(reply: Reply, choices: list[Any], extra: dict[str, Any]) -> dict[str, Any]:
    if reply.script.dialect.name == "llamacpp":
        head = {"choices": choices, "created": CREATED, "id": REQUEST_ID, "model": reply.model}
        return head | {"system_fingerprint": "b0-unknown", "object": _object(reply), **extra}
    head = {"id": REQUEST_ID, "object": _object(reply), "created": CREATED, "model": reply.model}
    return {**head, "choices": choices, **extra}


def _dump(reply: Reply, choices: list[Any], extra: dict[str, Any]) -> bytes:
    return orjson.dumps(_envelope(reply, choices, extra))
