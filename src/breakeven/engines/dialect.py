"""Dialect: what one inference server calls things, on its command line and in its log."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from breakeven.engines import log
from breakeven.engines.log import LogTable
from breakeven.engines.names import Named, Names
from breakeven.engines.phase import Phase as Phase
from breakeven.engines.phase import PhaseName as PhaseName
from breakeven.engines.speculation import SpeculationConfig

Reader = Callable[[str], str | None]
"""The text of a file where the server runs; None where there is none, or it cannot be read."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a command line makes its server listen."""

    host: str
    port: int


def read_here(path: str) -> str | None:
    """A file of this machine."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


class Dialect(ABC):
    """Argument lists are of whole words as a process gets them, the program among them: argv. No word that
    has nothing to do with speculation is ever changed, dropped or moved."""

    name: ClassVar[str]
    """As runs name the engine: vllm, sglang, llama.cpp, tensorrt-llm, tgi."""
    title: ClassVar[str]
    """As people do."""
    log: ClassVar[LogTable]
    names: ClassVar[Names]
    """Of its methods and settings."""

    def __init__(self, read: Reader = read_here) -> None:
        """`read` is for configuration files that a command line names."""
        self.read = read

    @abstractmethod
    def start(self, argv: Sequence[str]) -> int | None:
        """Where this engine's arguments begin in argv, after wrappers and program; None: not this engine."""

    def is_mine(self, argv: Sequence[str]) -> bool:
        """Whether this command line starts this engine."""
        return self.start(argv) is not None

    @abstractmethod
    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        """The words that turn it on; `version` picks the older flags of older engines.

        Raises UsageError for what this engine, or this version of it, does not have.
        """

    def named(self, config: SpeculationConfig) -> Named:
        """What a way to speculate names, spelled as `names` has it."""
        return Named((config.method,), tuple(config.options))

    def check_names(self, config: SpeculationConfig, version: str | None = None) -> None:
        """Raises UsageError for names that this engine has not, as `flags` does, unless the version is newer
        than what is known here."""
        self.names.check(self.named(config), version)

    def knows(self, config: SpeculationConfig) -> bool:
        """Whether each name in it is known, so that no version makes a difference to `check_names`."""
        return self.names.knows(self.named(config))

    def doubts(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        """Names that `check_names` passes though they are not known, a sentence each: part of `warnings`."""
        return self.names.doubts(self.named(config), version)

    def line(self, config: SpeculationConfig, version: str | None = None) -> str:
        """The flags as one line to type in a shell, bash where it must be. Raises UsageError as `flags`."""
        return shlex.join(self.flags(config, version))

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

    def files(
        self, argv: Sequence[str], config: SpeculationConfig | None, version: str | None = None
    ) -> dict[str, str]:
        """Texts by path that must be there before `with_speculation(argv, config, version)` is started, or
        `without(argv)` where config is None: engines that are configured by a file only need them."""
        return {}

    def copied(self, argv: Sequence[str]) -> str | None:
        """The file of the user's that `files` gives a changed copy of, as `argv` names it; None: none."""
        return None

    def elsewhere(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        """Where speculation is turned on, or may be, that `without` cannot turn off, and what to do: a
        variable, or a configuration file. None: nowhere."""
        return None

    def learns(self, config: SpeculationConfig) -> bool:
        """Whether its drafter keeps what it saw from one request to the next."""
        return False

    @abstractmethod
    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        """Where it listens; the engine's defaults where it says nothing. Raises UsageError for no port."""

    @abstractmethod
    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        """Known traps of this way to speculate beside these flags, each a sentence, before any restart."""

    def phase(self, line: str) -> Phase | None:
        """What a log line tells of the start; None where it tells nothing."""
        return self.log.phase(line)

    def failure(self, lines: Iterable[str]) -> str | None:
        """The line that best says why the server died; None where none does."""
        return log.failure(lines)

    def facts(self, lines: Iterable[str]) -> dict[str, str]:
        """What else the log tells that could confound: `version`, `model_runner`, `async_scheduling`,
        `cuda_graphs`, `attention_backend`, `kv_cache_tokens`; the last of each counts."""
        return self.log.read_facts(lines)
