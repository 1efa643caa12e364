"""Which columns of a record say what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from breakeven.errors import UsageError

OUTPUT_IDS = ("generated_token_ids", "output_token_ids", "completion_token_ids", "token_ids")
PROMPT_IDS = "prompt_token_ids"
OUTPUT_TEXT = ("output", "completion", "response", "generated_text")
TURNS = ("messages", "conversations")
PROMPT_TEXT = "prompt"
NAMES = ("id", "request_id")
MODELS = ("tokenizer", "model")
OTHERS = ("category", "max_tokens")


def is_known(name: str) -> bool:
    """Whether a column of this name is read, if it is there."""
    return name in (*OUTPUT_IDS, PROMPT_IDS, *OUTPUT_TEXT, *TURNS, PROMPT_TEXT, *NAMES, *MODELS, *OTHERS)


def first_of(names: Iterable[str], columns: Mapping[str, Any] | Iterable[str]) -> str | None:
    """The first of the names that is among the columns."""
    return next((name for name in names if name in columns), None)


def no_known_column(path: Path, columns: Iterable[str]) -> UsageError:
    return UsageError(
        f"{path} has no output: it needs a column {', '.join(OUTPUT_IDS)}, or with --tokenizer one of "
        f"{', '.join((*OUTPUT_TEXT, *TURNS))}; it has {', '.join(columns) or 'none'}"
    )
