"""The prompt and the output of a record that holds text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from breakeven.errors import UsageError
from breakeven.replay.sources.columns import OUTPUT_TEXT, PROMPT_TEXT, TURNS, first_of

ANSWERING = ("assistant", "gpt", "chatgpt", "bing", "bard", "model")
"""The speaker whose turn is the output, in chat messages and ShareGPT conversations."""


def texts_of(columns: Mapping[str, Any], where: object) -> tuple[str, str]:
    """(prompt, output) of an output column, else of the turns up to the first answer; empty where absent.

    A prompt of several messages is their contents, a line break between them. Raises UsageError for what is
    no text.
    """
    output = first_of(OUTPUT_TEXT, columns)
    turns = first_of(TURNS, columns)
    if output is None:
        return ("", "") if turns is None else _up_to_the_answer(columns[turns], where)
    answer = _text(columns[output], where, output)
    if turns is not None and columns.get(PROMPT_TEXT) is None:
        return joined(columns[turns], where), answer
    return _text(columns.get(PROMPT_TEXT), where, PROMPT_TEXT), answer


def joined(turns: Any, where: object) -> str:
    """The contents of chat messages, without a template."""
    return "\n".join(content for _, content in _turns(turns, where))


def _up_to_the_answer(turns: Any, where: object) -> tuple[str, str]:
    asked: list[str] = []
    for speaker, content in _turns(turns, where):
        if speaker in ANSWERING and asked:
            return "\n".join(asked), content
        asked.append(content)
    return "\n".join(asked), ""


def _turns(turns: Any, where: object) -> Iterable[tuple[str, str]]:
    """(speaker, content) of {role, content} or ShareGPT's {from, value}; parts of content are joined."""
    if turns is None:
        return
    if not isinstance(turns, Iterable) or isinstance(turns, str | Mapping):
        raise UsageError(f"{where}: the turns must be a list of objects with `role` and `content`")
    for number, turn in enumerate(turns, 1):
        if not isinstance(turn, Mapping):
            raise UsageError(f"{where}: turn {number} is no object with `role` and `content`")
        speaker = turn.get("role") or turn.get("from")
        content = turn["content"] if turn.get("content") is not None else turn.get("value")
        yield str(speaker), _content(content, where, number)


def _content(content: Any, where: object, number: int) -> str:
    if isinstance(content, list | tuple):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return _text(content, where, f"content of turn {number}")


def _text(value: Any, where: object, column: str) -> str:
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{where}: `{column}` is {str(value)[:40]!r}: it must be text")
    return value or ""
