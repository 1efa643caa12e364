"""Typed access to a JSON object that somebody else wrote: every error names the file and the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.cost.checks import MOST, whole
from breakeven.errors import UsageError

NO_DEFAULT: Any = object()
BY_HAND = (
    "Describe it by hand with --geometry FILE: "
    "`breakeven models describe llama-3.1-8b --json` prints the format"
)


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object and where it stands. A null counts as absent, as in Hugging Face configs."""

    values: Mapping[str, Any]
    where: str

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of the names that is present and not null."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), default)

    def count(self, *names: str, default: Any = NO_DEFAULT, least: int = 1, most: int = MOST) -> int:
        """A whole number. Raises UsageError if it is absent without a default, or no such number."""
        value = self.get(*names, default=default)
        if value is NO_DEFAULT:
            raise UsageError(
                f"{self.where} has no {' or '.join(names)}: it is not whole, or not known here. {BY_HAND}"
            )
        return whole(f"{self._found(names)} of {self.where}", value, least, most)

    def maybe_count(self, *names: str) -> int | None:
        """A whole number of at least 1, or None where it is absent."""
        return None if self.get(*names) is None else self.count(*names)

    def number(self, *names: str, default: float) -> float:
        value = self.get(*names, default=default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= MOST:
            raise self._wrong(self._found(names), value, "a number that can be used")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.get(name, default=default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self.get(name, default=default)
        if not isinstance(value, str):
            raise self._wrong(name, value, "text")
        return value

    def items(self, *names: str) -> list[Any]:
        """A list, empty where it is absent."""
        value = self.get(*names, default=[])
        if not isinstance(value, list):
            raise self._wrong(self._found(names), value, "a list")
        return value

    def texts(self, *names: str) -> list[str]:
        """A list of texts, empty where it is absent."""
        found = self.items(*names)
        for value in found:
            if not isinstance(value, str):
                raise self._wrong(self._found(names), value, "a list of texts")
        return found

    def child(self, name: str) -> Fields | None:
        """The object under a name, or None where it is absent."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self._wrong(name, value, "an object")
        return Fields(value, f"{name} of {self.where}")

    def _found(self, names: tuple[str, ...]) -> str:
        """Which of the names is meant, for messages."""
        return next((name for name in names if self.values.get(name) is not None), names[0])

    def _wrong(self, name: str, value: Any, wanted: str) -> UsageError:
        return UsageError(f"{name} of {self.where} is {repr(value)[:40]}, not {wanted}")
