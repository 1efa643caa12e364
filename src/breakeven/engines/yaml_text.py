"""Configuration files in YAML as text: a top-level entry is read or taken out, the rest stays as it is."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from breakeven.engines.argv import scalar
from breakeven.errors import UsageError

_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_EMPTY = re.compile(r"\s*(?:#|$)")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")


def entry(text: str, *keys: str) -> str | None:
    """The lines of a top-level entry, by any of its names; None where there is none.

    Raises UsageError for a file that is not a block of entries.
    """
    found = _span(text.splitlines(keepends=True), keys)
    return None if found is None else "".join(text.splitlines(keepends=True)[slice(*found)])


def without_entry(text: str, *keys: str) -> str:
    """The text without a top-level entry. Raises UsageError as `entry` does."""
    lines = text.splitlines(keepends=True)
    while (found := _span(lines, keys)) is not None:
        del lines[slice(*found)]
    return "".join(lines)


def value(text: str | None, *keys: str) -> Any:
    """The value of a top-level entry: a dict of one level, a scalar, or None where there is none.

    Raises UsageError for one that is nested deeper.
    """
    lines = (text and entry(text, *keys)) or ""
    head, *rest = [line for line in lines.splitlines() if not _EMPTY.match(line)] or [""]
    own = _scalar(head.partition(":")[2])
    if own is not None or not rest:
        return own
    indents = {len(line) - len(line.lstrip()) for line in rest}
    pairs = [line.strip().partition(":") for line in rest]
    if len(indents) > 1 or not all(colon for _, colon, _ in pairs):
        raise UsageError(f"{head} is nested more deeply than can be read here: give it in one level")
    return {name.strip().strip("'\""): _scalar(word) for name, _, word in pairs}


def _span(lines: list[str], keys: tuple[str, ...]) -> tuple[int, int] | None:
    names = tuple(f"{quote}{key}{quote}:" for key in keys for quote in ("", '"', "'"))
    for at, line in enumerate(lines):
        if line.startswith(("{", "[")):
            raise UsageError(
                "the configuration file is in one bracket: write each entry on a line of its own"
            )
        if line.startswith(names):
            stop = at + 1
            while stop < len(lines) and (lines[stop][0] in " \t" or not lines[stop].strip()):
                stop += 1
            while not lines[stop - 1].strip():
                stop -= 1
            return at, stop
    return None


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] in ('"', "{", "["):
        with contextlib.suppress(ValueError):
            return json.JSONDecoder().raw_decode(text)[0]
    if quoted := _QUOTED.match(text):
        return quoted[1].replace("''", "'")
    word = _COMMENT.sub("", text)
    return _CONSTANTS[word.lower()] if word.lower() in _CONSTANTS else scalar(word)


def written(name: str, settings: dict[str, Any]) -> str:
    """A top-level entry of one level; JSON's scalars are YAML's."""
    return f"{name}:\n" + "".join(f"  {key}: {json.dumps(each)}\n" for key, each in settings.items())
