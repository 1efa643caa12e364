"""Messages of a record, in one form: chat messages, ShareGPT conversations, a prompt with its response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from breakeven.eagle.data.chats import ASSISTANT, Message
from breakeven.errors import UsageError

ROLES = ("system", "developer", "user", ASSISTANT, "tool")
SPEAKERS: Mapping[str, str] = {
    "human": "user",
    "gpt": ASSISTANT,
    "chatgpt": ASSISTANT,
    "bing": ASSISTANT,
    "bard": ASSISTANT,
    "model": ASSISTANT,
}
"""Of ShareGPT and its relatives, beside the roles themselves."""
REASONING = ("reasoning_content", "reasoning", "thinking")
KEPT = ("tool_calls", "tool_call_id", "name")


def messages_of(turns: Any, where: object) -> tuple[Message, ...]:
    """Messages with `role`, `content` and what else a template reads; fields without a value are left out.

    Raises UsageError, which names the place, for what are no messages.
    """
    if not isinstance(turns, Iterable) or isinstance(turns, str | bytes | Mapping):
        raise UsageError(f'{where}: the turns must be a list of {{"role": "user", "content": "…"}}')
    return tuple(_message(turn, where, number) for number, turn in enumerate(turns, 1))


def user(text: str) -> Message:
    """A prompt as a message."""
    return {"role": "user", "content": text}


def assistant(text: str, reasoning: str = "", tool_calls: Any = None) -> Message:
    """A reply as a message."""
    said: dict[str, Any] = {"role": ASSISTANT, "content": text}
    if reasoning:
        said["reasoning_content"] = reasoning
    if tool_calls:
        said["tool_calls"] = tool_calls
    return said


def _message(turn: Any, where: object, number: int) -> Message:
    if not isinstance(turn, Mapping):
        raise UsageError(f"{where}: turn {number} is no object with `role` and `content`")
    said: dict[str, Any] = {"role": _role(turn, where, number), "content": _content(turn, where, number)}
    reasoning = next((turn[name] for name in REASONING if isinstance(turn.get(name), str)), "")
    if reasoning:
        said["reasoning_content"] = reasoning
    return said | {name: turn[name] for name in KEPT if turn.get(name)}


def _role(turn: Mapping[str, Any], where: object, number: int) -> str:
    speaker = turn.get("role") or turn.get("from")
    role = SPEAKERS.get(speaker, speaker) if isinstance(speaker, str) else None
    if role not in ROLES:
        raise UsageError(
            f"{where}: unknown role {str(speaker)[:40]!r} in turn {number}: use {', '.join(ROLES)}"
        )
    return role


def _content(turn: Mapping[str, Any], where: object, number: int) -> Any:
    content = turn["content"] if turn.get("content") is not None else turn.get("value")
    if content is None and turn.get("tool_calls"):
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, str | Mapping) for part in content):
        return [_plain(part) for part in content]
    raise UsageError(f"{where}: turn {number} has no `content`: give a string")


def _plain(part: str | Mapping[str, Any]) -> Any:
    """A part without the fields that it does not use, which parquet adds to all alike."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {name: value for name, value in part.items() if value is not None}
