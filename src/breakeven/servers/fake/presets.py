"""Scripts that speak as a real engine does, and answers that are no reply at all."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.servers.fake.script import LLAMACPP, VLLM, Answer, Script

_ERROR_TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}


def vllm_script(**fields: Any) -> Script:
    """vLLM 0.32: role chunk with `content: ""`, one chunk per step, finish_reason on the last text chunk."""
    return Script(**{"dialect": VLLM, "ttft_s": 0.05, "tpot_s": 0.02, "n_tokens": 128, **fields})


def llamacpp_script(**fields: Any) -> Script:
    """llama.cpp: a role chunk with `content: null`, an event per token, usage and timings last.

    The end-of-sequence token counts in usage, and comes with the finish chunk.
    """
    engine = {"dialect": LLAMACPP, "eos": True, "ttft_s": 0.05, "tpot_s": 0.02, "n_tokens": 128}
    return Script(**{**engine, **fields})


def error_body(status: int, message: str) -> bytes:
    """The error object that vLLM and llama.cpp share in essence."""
    kind = _ERROR_TYPES.get(status, "InternalServerError")
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": status}})


def http_error(status: int, message: str, *, retry_after_s: int | None = None) -> Script:
    """An HTTP error with an error object."""
    headers = () if retry_after_s is None else (("Retry-After", str(retry_after_s)),)
    return Script(answer=Answer(status, error_body(status, message), headers=headers))


def html_page(status: int = 200) -> Script:
    """A web page where a stream was due, as a proxy or a wrong port gives."""
    page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>"
    return Script(answer=Answer(status, page, content_type="text/html; charset=utf-8"))


def empty_body(status: int = 200) -> Script:
    """A success that says nothing."""
    return Script(answer=Answer(status, b"", content_type="text/event-stream"))


def json_not_sse(text: str = "Hello") -> Script:
    """A complete JSON reply although a stream was asked for."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "chatcmpl-0", "object": "chat.completion", "choices": [choice], "usage": usage}
    return Script(answer=Answer(200, orjson.dumps(reply)))
