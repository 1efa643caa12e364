"""One delta of a chat or completions chunk: which text it carries, and of which kind."""

from __future__ import annotations

from typing import Any

import orjson


def text_of(value: Any) -> str:
    """A string, or the text of a list of parts; anything else carries none."""
    if type(value) is str:
        return value
    if type(value) is list:
        return "".join(_part(part) for part in value)
    return ""


def _part(part: Any) -> str:
    if type(part) is str:
        return part
    if type(part) is dict and part.get("type", "text") in ("text", "output_text"):
        text = part.get("text")
        return text if type(text) is str else ""
    return ""


def thinking_of(value: Any) -> str:
    """The text of the thinking parts in a list of content parts."""
    if type(value) is not list:
        return ""
    parts = (part for part in value if type(part) is dict and part.get("type") in ("thinking", "reasoning"))
    return "".join(text_of(part.get("thinking") or part.get("text")) for part in parts)


def reasoning_of(delta: dict[str, Any]) -> str:
    """`reasoning_content` or `reasoning`: servers that send both send one text twice."""
    return (
        text_of(delta.get("reasoning_content"))
        or text_of(delta.get("reasoning"))
        or thinking_of(delta.get("content"))
    )


def tools_of(delta: dict[str, Any]) -> str:
    """Name and arguments of every tool call, and of the legacy function_call."""
    calls = delta.get("tool_calls")
    functions = [call.get("function") for call in calls if type(call) is dict] if type(calls) is list else []
    functions.append(delta.get("function_call"))
    return "".join(
        _argument(f.get("name")) + _argument(f.get("arguments")) for f in functions if type(f) is dict
    )


def _argument(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) in (dict, list):
        try:
            return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
        except orjson.JSONEncodeError:
            return ""
    return ""
