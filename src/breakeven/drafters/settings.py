"""Settings of a drafter: a frozen dataclass whose fields know their limits, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from breakeven.errors import UsageError

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
MOST = 1_048_576
"""Highest number where a setting has no limit of its own: more than any request has tokens."""
MOST_COUNTED = 2**31 - 1
"""Highest number where a setting only counts: nothing is allocated or walked for it."""
_LONGEST_SHOWN = 40


def setting(
    default: Any, help: str, low: float | None = None, high: float = MOST, kind: type | None = None
) -> Any:
    """A dataclass field with its help text and the limits that the engine has, or that sense has.

    `low` is −high if left out. `kind` is the type of a value; by default that of the default. None passes
    only where it is the default.
    """
    kind = kind or type(default)
    limits = {"low": -high if low is None else low, "high": high} if kind in (int, float) else {}
    return field(default=default, metadata={"help": help, "kind": kind, **limits})


@dataclass(frozen=True, slots=True)
class Settings:
    """Base of all drafters' settings. Raises UsageError for a value of the wrong type or out of limits."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            _check(spec.name, getattr(self, spec.name), spec.default, spec.metadata)

    def can_draft(self) -> bool:
        """Whether anything is ever drafted with them."""
        return True


def _check(name: str, value: Any, default: Any, metadata: Any) -> None:
    if "kind" not in metadata or (value is None and default is None):
        return
    kind, low, high = metadata["kind"], metadata.get("low"), metadata.get("high")
    instead = f"type --set {name}={_typed(low if default is None else default)}"
    if not _is(value, kind):
        raise UsageError(f"{name} is {WORDS.get(kind, kind.__name__)}, not {shown(value)}: {instead}")
    if low is not None and not (low <= value <= high and abs(value) != math.inf):
        raise UsageError(f"{name} is from {number(low)} to {number(high)}, not {shown(value)}: {instead}")


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def shown(value: Any) -> str:
    """A value that was refused, for the message: never long."""
    if type(value) is int and value.bit_length() > 64:
        return "a number beyond 64 bits"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def number(limit: float) -> str:
    """A limit as one types it."""
    return str(limit) if type(limit) is int else f"{limit:g}"


def _typed(value: Any) -> str:
    """A value as --set takes it."""
    if value is None:
        return "none"
    return str(value).lower() if type(value) is bool else str(value)
