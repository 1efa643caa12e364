"""What every size of a model must be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

from breakeven.errors import UsageError

MOST = 10**9
"""Above any size of any model, and small enough that products of a few still make sense."""


def whole(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """The value as a count. Raises UsageError, which names it, unless it is a whole number in range."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        shown = repr(value)
        raise UsageError(
            f"impossible geometry: {name} is {shown[:40]}, not a whole number from {least} to {most:,}"
        )
    return value


def check_sizes(record: Any, may_be_zero: Collection[str] = ()) -> None:
    """Every integer field of a dataclass must be a size. Raises UsageError for the first that is none."""
    for field in fields(record):
        value = getattr(record, field.name)
        if field.type == "int" or (field.type == "int | None" and value is not None):
            whole(field.name, value, least=0 if field.name in may_be_zero else 1)
