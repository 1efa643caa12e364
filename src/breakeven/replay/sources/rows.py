"""Rows of a file, whatever its format: one mapping of columns a request, and the place it was read from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One record. A list of integers may come as an array."""

    path: Path
    unit: Literal["line", "item", "row"]
    number: int
    columns: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.number}"

    @property
    def default_id(self) -> str:
        return f"{self.unit}{self.number}"


class Rows(Protocol):
    """A file that can be read from its beginning as often as needed."""

    @property
    def path(self) -> Path: ...

    @property
    def kind(self) -> Literal["jsonl", "parquet"]: ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names that the file gives for all records together; none where only records have names."""

    def count(self) -> int | None:
        """About how many records there are, for a progress bar; None where only reading tells."""

    def read(self, warn: Warn, only: Collection[str] | None = None) -> Iterator[Row]:
        """The records in order. Columns other than `only`, if that is given, may be left out.

        Raises UsageError for damage after which nothing more can be trusted.
        """
