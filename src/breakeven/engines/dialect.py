"""Dialect: what one inference server calls things, on its command line and in its log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from breakeven.engines.speculation import SpeculationConfig

PhaseName = Literal["starting", "loading weights", "compiling", "capturing graphs", "warming up", "serving"]


@dataclass(frozen=True, slots=True)
class Phase:
    """How far a server is with its start, as a line of its log tells."""

    name: PhaseName
    done: int | None = None
    total: int | None = None
    """Of the phase's units, such as shards or graph sizes; None where the line has none."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a command line makes its server listen."""

    host: str
    port: int


class Dialect(ABC):
    """Argument lists are of whole words as a process gets them, the program among them: argv. No word that
    has nothing to do with speculation is ever changed, dropped or moved."""

    name: ClassVar[str]
    """As runs name the engine: vllm, sglang, llama.cpp, tensorrt-llm, tgi."""
    title: ClassVar[str]
    """As people do."""

    @abstractmethod
    def is_mine(self, argv: Sequence[str]) -> bool:
        """Whether this command line starts this engine."""

    @abstractmethod
    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        """The words that turn it on; `version` picks the older flags of older engines.

        Raises UsageError for what this engine, or this version of it, does not have.
        """

    @abstractmethod
    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        """What a command line turns on; None is nothing. Raises UsageError for flags that cannot be read."""

    @abstractmethod
    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command line without all that concerns speculation."""

    def with_speculation(
        self, argv: Sequence[str], config: SpeculationConfig, version: str | None = None
    ) -> tuple[str, ...]:
        """The command line with this in place of what speculation it had."""
        return (*self.without(argv), *self.flags(config, version))

    @abstractmethod
    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        """Where it listens; the engine's defaults where it says nothing."""

    @abstractmethod
    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        """Known traps of this way to speculate beside these flags, each a sentence, before any restart."""

    @abstractmethod
    def phase(self, line: str) -> Phase | None:
        """What a log line tells of the start; None where it tells nothing."""

    @abstractmethod
    def failure(self, lines: Iterable[str]) -> str | None:
        """The line that best says why the server died; None where none does."""

    @abstractmethod
    def facts(self, lines: Iterable[str]) -> dict[str, str]:
        """What else the log tells that could confound: `version`, `model_runner`, `async_scheduling`,
        `cuda_graphs`, `attention_backend`, `kv_cache_tokens`; the last of each counts."""
