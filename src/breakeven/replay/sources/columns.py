"""Which columns of a record say what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
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
LIMITS = ("max_tokens", "max_model_len")
OTHERS = ("category", *LIMITS)

MOST_NAMED = 30
"""Columns that a refusal names."""


def is_known(name: str) -> bool:
    """Whether a column of this name is read, if it is there."""
    return name in (*OUTPUT_IDS, PROMPT_IDS, *OUTPUT_TEXT, *TURNS, PROMPT_TEXT, *NAMES, *MODELS, *OTHERS)


def first_of(names: Iterable[str], columns: Mapping[str, Any]) -> str | None:
    """The first of the names that holds something in this record."""
    return next((name for name in names if columns.get(name) is not None), None)


def no_known_column(path: Path, columns: Collection[str]) -> UsageError:
    some = [*islice(columns, MOST_NAMED), *(["…"] if len(columns) > MOST_NAMED else [])]
    return UsageError(
        f"{path} has no output: it needs a column {', '.join(OUTPUT_IDS)}, or with --tokenizer one of "
        f"{', '.join((*OUTPUT_TEXT, *TURNS))}; it has {', '.join(some) or 'none'}"
    )


def no_tokenizer(path: Path, text: str) -> UsageError:
    return UsageError(
        f"{path} holds text (`{text}`) and no token ids: name the model's tokenizer with "
        "--tokenizer FOLDER, or record the ids"
    )
