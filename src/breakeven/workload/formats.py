"""Prompt texts → Prompts: JSON lines, JSON lists, ShareGPT and one prompt per line. Pure: no file is touched.

A record is one JSON object, known by its keys:

    {"prompt": "…"}            optional: id, category, max_tokens, system
    {"messages": [{"role": "user", "content": "…"}]}            optional: the same
    {"conversations": [{"from": "human", "value": "…"}]}        ShareGPT; asked is the first human turn
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from breakeven.errors import WorkloadError
from breakeven.workload.prompts import Prompt

Api = Literal["chat", "completions"]

DEFAULT_CATEGORY = "uncategorised"
_ROLES = ("system", "developer", "user", "assistant", "tool")
_SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "system": "system",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "tool": "tool",
}
_LOOKS_LIKE_JSON = re.compile(r'\s*(\{|\[\s*[{\]"])')


@dataclass(frozen=True, slots=True)
class Parsed:
    """The prompts of one text, in order, ids unique; `warnings` says what was left out."""

    prompts: tuple[Prompt, ...]
    warnings: tuple[str, ...] = ()


def parse(text: str, source: str, api: Api = "chat", plain: bool = False) -> Parsed:
    """Prompts of a whole file. `plain` prefers one prompt per line unless the first line is a JSON object.

    Raises WorkloadError, which names `source` and the line.
    """
    if "\0" in text:
        raise WorkloadError(f"{source} holds NUL bytes: give JSON lines or one prompt per line")
    records, skipped = [], 0
    for where, record in _records(text, source, plain):
        prompt = _prompt(where, record, api)
        if prompt is None:
            skipped += 1
        else:
            records.append((where, prompt))
    _refuse_duplicates(records)
    if not records:
        raise WorkloadError(f"{source} holds no prompt: write one per line, or JSON lines with `prompt`")
    warning = f"{source}: {skipped} conversations without a human turn were left out"
    return Parsed(tuple(prompt for _, prompt in records), (warning,) if skipped else ())


@dataclass(frozen=True, slots=True)
class _Where:
    source: str
    unit: str
    """`line` or `item`."""
    number: int

    def __str__(self) -> str:
        return f"{self.source}, {self.unit} {self.number}"

    @property
    def default_id(self) -> str:
        return f"{self.unit}{self.number}"


def _records(text: str, source: str, plain: bool) -> Iterator[tuple[_Where, Any]]:
    """(place, decoded JSON value) of everything that is not blank."""
    if not _is_json(text, plain):
        yield from ((where, {"prompt": line}) for where, line in _lines(text, source))
        return
    whole = _whole(text, source)
    if whole is not None:
        for number, item in enumerate(whole, 1):
            yield _Where(source, "item", number), item
        return
    for where, line in _lines(text, source):
        yield where, _decode_line(where, line)


def _lines(text: str, source: str) -> Iterator[tuple[_Where, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _Where(source, "line", number), line.rstrip("\r")


def _is_json(text: str, plain: bool) -> bool:
    if not plain:
        return _LOOKS_LIKE_JSON.match(text) is not None
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        return isinstance(orjson.loads(first), dict)
    except orjson.JSONDecodeError:
        return False


def _whole(text: str, source: str) -> list[Any] | None:
    """The items of one JSON list, or the one JSON object over several lines; None for JSON lines."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.lstrip().startswith("["):
            raise WorkloadError(
                f"{source}, line {error.lineno}: not JSON ({error.msg}, column {error.colno}): "
                "mend the list, or name the file .txt if it is one prompt per line"
            ) from error
        return None
    if isinstance(value, list):
        return value
    return [value] if text.strip().count("\n") else None


def _decode_line(where: _Where, line: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise WorkloadError(
            f"{where}: not JSON ({error.msg}, column {error.colno}): "
            "mend the line, or name the file .txt if it is one prompt per line"
        ) from error


def _prompt(where: _Where, record: Any, api: Api) -> Prompt | None:
    """One record as a Prompt; None for a ShareGPT conversation in which no human speaks."""
    if not isinstance(record, Mapping):
        raise WorkloadError(f'{where}: not a JSON object: write {{"prompt": "…"}}')
    keys = [key for key in ("prompt", "messages", "conversations") if record.get(key) is not None]
    if len(keys) > 1:
        raise WorkloadError(f"{where}: both `{keys[0]}` and `{keys[1]}`: keep one of them")
    if not keys:
        raise WorkloadError(f"{where}: no prompt: {_found(record)}")
    if keys[0] == "prompt":
        return _build(where, record, api, text=_text(where, record["prompt"]))
    if keys[0] == "messages":
        return _build(where, record, api, messages=_messages(where, record["messages"]))
    messages = _first_turn(where, record["conversations"])
    return None if messages is None else _build(where, record, api, messages=messages)


def _found(record: Mapping[str, Any]) -> str:
    for key in record:
        for near in difflib.get_close_matches(key, ("prompt", "messages"), 1, 0.7):
            return f"rename `{key}` to `{near}`"
    return f"add `prompt` or `messages` (found: {', '.join(record) or 'nothing'})"


def _build(
    where: _Where,
    record: Mapping[str, Any],
    api: Api,
    text: str | None = None,
    messages: tuple[Mapping[str, Any], ...] | None = None,
) -> Prompt:
    system = _system(where, record, messages)
    if api == "completions":
        text, messages = _as_text(where, text, system + (messages or ())), None
    else:
        messages = system + (messages or ({"role": "user", "content": text},))
        text = None
    return Prompt(
        id=_id(where, record.get("id")),
        category=_name(where, "category", record.get("category"), DEFAULT_CATEGORY),
        messages=messages,
        text=text,
        max_tokens=_max_tokens(where, record.get("max_tokens")),
    )


def _as_text(where: _Where, text: str | None, messages: tuple[Mapping[str, Any], ...]) -> str:
    """A raw completion takes a `prompt`, or a lone user message; a chat has no agreed form as raw text."""
    if text is not None and not messages:
        return text
    if text is None and len(messages) == 1 and messages[0]["role"] == "user":
        content = messages[0]["content"]
        if isinstance(content, str):
            return content
    raise WorkloadError(f"{where}: a chat is no raw completion: give `prompt` alone, or use chat")


def _system(
    where: _Where, record: Mapping[str, Any], messages: tuple[Mapping[str, Any], ...] | None
) -> tuple[Mapping[str, Any], ...]:
    system = record.get("system")
    if system is None:
        return ()
    if not isinstance(system, str):
        raise WorkloadError(f"{where}: `system` must be a string")
    if messages and messages[0]["role"] in ("system", "developer"):
        raise WorkloadError(f"{where}: both `system` and a {messages[0]['role']} message: keep one of them")
    return ({"role": "system", "content": system},)


def _text(where: _Where, value: Any) -> str:
    if not isinstance(value, str):
        raise WorkloadError(f"{where}: `prompt` must be a string; a chat goes under `messages`")
    if not value.strip():
        raise WorkloadError(f"{where}: `prompt` is empty: write a text, or remove the line")
    return value


def _messages(where: _Where, value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value:
        raise WorkloadError(f'{where}: `messages` must be a list of {{"role": "user", "content": "…"}}')
    for number, message in enumerate(value, 1):
        if not isinstance(message, Mapping):
            raise WorkloadError(f"{where}: message {number} is not an object with `role` and `content`")
        if message.get("role") not in _ROLES:
            raise WorkloadError(
                f"{where}: unknown role {message.get('role')!r} in message {number}: use {', '.join(_ROLES)}"
            )
        content = message.get("content")
        if not isinstance(content, str | list) and not (content is None and message.get("tool_calls")):
            raise WorkloadError(f"{where}: message {number} has no `content`: give a string")
    return tuple(value)


def _first_turn(where: _Where, value: Any) -> tuple[Mapping[str, Any], ...] | None:
    """The first human turn, after a system turn if there is one; other turns are not asked."""
    if not isinstance(value, list):
        raise WorkloadError(f'{where}: `conversations` must be a list of {{"from": "human", "value": "…"}}')
    system: tuple[Mapping[str, Any], ...] = ()
    for number, turn in enumerate(value, 1):
        role, content = _turn(where, number, turn)
        if role == "system":
            system = ({"role": "system", "content": content},)
        if role == "user" and content.strip():
            return (*system, {"role": "user", "content": content})
    return None


def _turn(where: _Where, number: int, turn: Any) -> tuple[str, str]:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("value"), str):
        raise WorkloadError(f"{where}: turn {number} needs `from` and `value`, both strings")
    speaker = turn.get("from")
    if not isinstance(speaker, str) or speaker not in _SHAREGPT_ROLES:
        raise WorkloadError(
            f"{where}: unknown role {speaker!r} in turn {number}: use {', '.join(_SHAREGPT_ROLES)}"
        )
    return _SHAREGPT_ROLES[speaker], turn["value"]


def _id(where: _Where, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _name(where, "id", value, where.default_id)


def _name(where: _Where, key: str, value: Any, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str) or not value.strip():
        raise WorkloadError(f"{where}: `{key}` must be a string that is not empty")
    return value


def _max_tokens(where: _Where, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise WorkloadError(f"{where}: max_tokens is {value!r}: write 1 or more, or leave it out")
    return value


def _refuse_duplicates(records: list[tuple[_Where, Prompt]]) -> None:
    first: dict[str, _Where] = {}
    for where, prompt in records:
        if prompt.id in first:
            earlier = first[prompt.id]
            raise WorkloadError(
                f"{where}: id {prompt.id!r} is that of {earlier.unit} {earlier.number}: make it unique"
            )
        first[prompt.id] = where
