"""The JSON body of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from breakeven.client.endpoint import Endpoint
from breakeven.errors import UsageError
from breakeven.workload.prompts import Prompt, Request, Sampling

LIMITS = ("max_tokens", "max_completion_tokens", "n_predict")
"""Fields that limit a reply. Which of several holds is the server's matter; -1 is no limit in llama.cpp."""


@dataclass(frozen=True, slots=True)
class AskFor:
    """What the server is asked to tell beside the text."""

    usage: bool = True
    """stream_options.include_usage, without which tokens cannot be counted."""
    usage_per_chunk: bool = False
    """stream_options.continuous_usage_stats, by which vLLM tells how many tokens each chunk holds."""
    token_ids: bool = False
    """return_token_ids, which vLLM understands and others refuse."""
    spec_details: bool = False
    """return_spec_tokens_details, by which SGLang tells what it drafted for the request."""


def max_tokens_of(request: Request, sampling: Sampling) -> int:
    return sampling.max_tokens if request.prompt.max_tokens is None else request.prompt.max_tokens


def most_tokens(request: Request, sampling: Sampling) -> int | None:
    """Tokens that the request's replies may have together; None where `sampling.extra` lifts the limit."""
    asked = {"max_tokens": max_tokens_of(request, sampling), **sampling.extra}
    limits = [asked[name] for name in LIMITS if asked.get(name) is not None]
    replies = asked.get("n") or 1
    if not limits or any(type(value) is not int or value < 1 for value in (*limits, replies)):
        return None
    return int(max(limits) * replies)


def request_body(endpoint: Endpoint, request: Request, sampling: Sampling, ask_for: AskFor) -> bytes:
    """JSON. A field of `sampling.extra` replaces ours, and leaves it out where it is None.

    Raises UsageError for a prompt of messages sent to the completions API, or an extra that is no JSON.
    """
    fields: dict[str, Any] = {
        "model": endpoint.model,
        **_prompt_fields(endpoint, request.prompt),
        "max_tokens": max_tokens_of(request, sampling),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stream": True,
        "stream_options": _stream_options(ask_for),
        "return_token_ids": True if ask_for.token_ids else None,
        "return_spec_tokens_details": True if ask_for.spec_details else None,
        **sampling.extra,
    }
    try:
        return orjson.dumps({name: value for name, value in fields.items() if value is not None})
    except orjson.JSONEncodeError as error:
        raise UsageError(f"prompt {request.prompt.id!r} cannot be written as JSON ({error})") from error


def _stream_options(ask_for: AskFor) -> dict[str, bool] | None:
    if not ask_for.usage:
        return None
    return {"include_usage": True} | ({"continuous_usage_stats": True} if ask_for.usage_per_chunk else {})


def _prompt_fields(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    if endpoint.api == "completions":
        if prompt.text is None:
            raise UsageError(f"prompt {prompt.id!r} has messages, which need the chat API: type --api chat")
        return {"prompt": prompt.text}
    if prompt.messages is not None:
        return {"messages": list(prompt.messages)}
    return {"messages": [{"role": "user", "content": prompt.text}]}
