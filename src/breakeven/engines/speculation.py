"""SpeculationConfig: what is turned on in an engine, in words that all engines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from breakeven.errors import UsageError

LOOKUP_METHODS = ("ngram", "suffix")
"""Methods that find drafts in text; the others need weights or code of their own."""
LEARNED_METHODS = ("eagle3", "eagle", "mtp", "draft-model", "medusa")
GUARD_METHODS = ("guard", "guard-off")
"""Our own drafter, and the same that never drafts: where an engine loads drafters by their class."""
METHODS = (*LOOKUP_METHODS, *LEARNED_METHODS, *GUARD_METHODS)
"""All names of ours, of which each engine has some; it may have others of its own."""
MOST_K = 1000
"""Tokens of a draft, or of an n-gram: nothing longer is believed."""


@dataclass(frozen=True, slots=True)
class SpeculationConfig:
    """One way to speculate. Raises UsageError for one that cannot be."""

    method: str
    """One of METHODS, or an engine's own name for another."""
    k: int | None = None
    """Most tokens of a draft; None is the engine's default."""
    min_n: int | None = None
    max_n: int | None = None
    """Shortest and longest n-gram that is looked up."""
    draft: str | None = None
    """Weights of a learned drafter, or the class of a custom one: a path or name, as the engine takes it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further settings, by the engine's own names."""

    def __post_init__(self) -> None:
        for name in ("k", "min_n", "max_n"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} {value}: give at least 1")
        if self.min_n is not None and self.max_n is not None and self.min_n > self.max_n:
            raise UsageError(f"min_n {self.min_n} is above max_n {self.max_n}: swap them")

    def describe(self) -> str:
        """One line: `ngram, k 5, n-grams of 2 to 4 tokens`."""
        parts = [self.method, *([f"k {self.k}"] if self.k else []), *self._lengths()]
        parts += [f"draft {self.draft}"] if self.draft else []
        return ", ".join([*parts, *(f"{name} {value}" for name, value in self.options.items())])

    def _lengths(self) -> list[str]:
        if self.min_n is not None and self.max_n is not None:
            lengths = str(self.min_n) if self.min_n == self.max_n else f"{self.min_n} to {self.max_n}"
            return [f"n-grams of {lengths} tokens"]
        ends = [("from", self.min_n), ("up to", self.max_n)]
        return [f"n-grams {word} {n} tokens" for word, n in ends if n is not None]

    def require(self, engine: str, *names: str) -> None:
        """Raise UsageError for the first of these settings that is not given."""
        examples = {"k": "--k 5", "draft": "--draft PATH"}
        for name in names:
            if getattr(self, name) is None:
                raise UsageError(f"{engine}'s {self.method} needs {name}: type {examples[name]}")

    def refuse(self, engine: str, *names: str) -> None:
        """Raise UsageError for the first of these settings that is given, though the engine has none."""
        for name in names:
            if getattr(self, name):
                option = "--set" if name == "options" else f"--{name.replace('_', '-')}"
                raise UsageError(f"{engine}'s {self.method} has no {name}: leave out {option}")
