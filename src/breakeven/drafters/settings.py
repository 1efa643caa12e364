"""Settings of a drafter: a frozen dataclass whose fields know their limits, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from breakeven.errors import UsageError


def setting(default: Any, help: str, low: float = -math.inf, high: float = math.inf) -> Any:
    """A dataclass field with its help text and the limits that the engine has; None passes unchecked."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True, slots=True)
class Settings:
    """Base of all drafters' settings. Raises UsageError for a value of the wrong type or out of limits."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            _check(spec.name, getattr(self, spec.name), spec.default, spec.metadata)


def _check(name: str, value: Any, default: Any, metadata: Any) -> None:
    if value is None:
        return
    if default is not None and default is not MISSING and not _alike(value, default):
        raise UsageError(f"{name} is a {type(default).__name__}, not {value!r}: type {name}={default}")
    if isinstance(value, str) or not metadata:
        return
    low, high = metadata["low"], metadata["high"]
    if not low <= value <= high:
        raise UsageError(f"{name} is {_range(low, high)}, not {value}: type {name}={default or low}")


def _alike(value: Any, default: Any) -> bool:
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def _range(low: float, high: float) -> str:
    return f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
