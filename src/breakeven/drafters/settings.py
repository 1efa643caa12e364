"""Settings of a drafter: a frozen dataclass whose fields know their limits, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from breakeven.errors import UsageError

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def setting(
    default: Any, help: str, low: float = -math.inf, high: float = math.inf, kind: type | None = None
) -> Any:
    """A dataclass field with its help text and the limits that the engine has.

    `kind` is the type of a value; by default that of the default. None passes only where it is the default.
    """
    return field(
        default=default, metadata={"help": help, "low": low, "high": high, "kind": kind or type(default)}
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Base of all drafters' settings. Raises UsageError for a value of the wrong type or out of limits."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            _check(spec.name, getattr(self, spec.name), spec.default, spec.metadata)


def _check(name: str, value: Any, default: Any, metadata: Any) -> None:
    if not metadata or (value is None and default is None):
        return
    kind, low, high = metadata["kind"], metadata["low"], metadata["high"]
    if not _is(value, kind):
        raise UsageError(f"{name} is {WORDS.get(kind, kind.__name__)}, not {value!r}: type {name}={default}")
    if kind is not str and not low <= value <= high:
        raise UsageError(f"{name} is {_range(low, high)}, not {value}: type {name}={default or low}")


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def _range(low: float, high: float) -> str:
    return f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
