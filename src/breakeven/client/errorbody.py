"""The message in whatever a server calls an error."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

MAX_DETAIL_CHARACTERS = 600
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_MESSAGE_KEYS = ("message", "detail", "msg", "reason", "error_description", "type", "code")


def loads(data: bytes) -> Any:
    """JSON → value, or None where it is no JSON of any kind a server writes.

    Lone surrogates, NaN and bytes that are not UTF-8, all of which servers send, are accepted.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        return _loads_leniently(data)


def _loads_leniently(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def error_in(value: Any) -> str | None:
    """The message if the JSON value says that it is an error; None if it does not."""
    if not isinstance(value, dict):
        return None
    if value.get("error"):
        return message_of(value["error"])
    if value.get("object") == "error" or value.get("type") == "error":
        return message_of(value)
    return None


def message_of(value: Any) -> str:
    """The message in an error object, string, or list of them."""
    try:
        return _message_of(value)
    except RecursionError:
        return "an error nested too deeply to be read"


def _message_of(value: Any) -> str:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, list):
        return _short("; ".join(_message_of(item) for item in value[:5]))
    if isinstance(value, dict):
        for key in ("error", *_MESSAGE_KEYS):
            if value.get(key) and not isinstance(value[key], bool):
                return _message_of(value[key])
    return _short(str(value))


def detail_of(body: bytes) -> str:
    """What a reply's body says, whether JSON, HTML or text; in one short line."""
    value = loads(body)
    if value is not None:
        return message_of(value)
    text = body[:65536].decode("utf-8", "replace")
    if is_html(body):
        title = _TITLE.search(text)
        text = title[1] if title else _TAG.sub(" ", text)
    return _short(text)


def is_html(body: bytes) -> bool:
    start = body.lstrip()[:200].lower()
    return start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<body", b"<h1", b"<!--"))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_DETAIL_CHARACTERS else line[:MAX_DETAIL_CHARACTERS] + "…"
