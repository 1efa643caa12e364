"""prompts.jsonl: the prompts of a run as they were asked, in the form that `--prompts` reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from breakeven.errors import RunFormatError
from breakeven.trace.disk import PROMPTS
from breakeven.trace.rows import dump_json
from breakeven.workload.prompts import Prompt


def dump_prompts(prompts: Iterable[Prompt]) -> bytes:
    """A prompt per line."""
    lines = []
    for prompt in prompts:
        record: dict[str, Any] = {"id": prompt.id, "category": prompt.category}
        if prompt.messages is not None:
            record["messages"] = prompt.messages
        else:
            record["prompt"] = prompt.text
        if prompt.max_tokens is not None:
            record["max_tokens"] = prompt.max_tokens
        lines.append(dump_json(record) + b"\n")
    return b"".join(lines)


def load_prompt_lines(data: bytes) -> tuple[Prompt, ...]:
    """The prompts of prompts.jsonl. Raises ValueError, KeyError or TypeError for other data."""
    return tuple(_load_prompt(orjson.loads(line)) for line in data.splitlines())


def _load_prompt(record: Mapping[str, Any]) -> Prompt:
    messages = record.get("messages")
    return Prompt(
        id=record["id"],
        category=record["category"],
        messages=None if messages is None else tuple(messages),
        text=record.get("prompt"),
        max_tokens=record.get("max_tokens"),
    )


def prompts_digest(prompts: Iterable[Prompt]) -> str:
    """SHA-256 of prompts.jsonl, in hexadecimal."""
    return hashlib.sha256(dump_prompts(prompts)).hexdigest()


def load_prompts_of(folder: Path) -> tuple[Prompt, ...]:
    """The prompts that a run folder keeps. Raises RunFormatError."""
    path = folder / PROMPTS
    try:
        return load_prompt_lines(path.read_bytes())
    except OSError as error:
        raise RunFormatError(f"{folder} lacks {PROMPTS} ({error.strerror}): measure again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunFormatError(f"{path} is damaged ({error}): measure again") from error
