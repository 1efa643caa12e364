"""Bodies of requests, as an OpenAI-compatible server takes or refuses them."""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.servers.fake.presets import error_body
from breakeven.servers.fake.script import Answer


def error(status: int, message: str) -> Answer:
    """An answer that says what is wrong."""
    return Answer(status, error_body(status, message))


def parsed(body: bytes) -> dict[str, Any] | None:
    """The JSON object that it is; None for anything else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def problem(body: dict[str, Any]) -> Answer | None:
    """Why it cannot be served; None where it can."""
    for name in ("max_tokens", "max_completion_tokens"):
        limit = body.get(name)
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            return error(400, f"{name} must be at least 1, got {limit}.")
    if not body.get("messages") and not body.get("prompt"):
        return error(400, "Neither messages nor prompt was given.")
    return None
