"""Format: how one engine has a head on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from breakeven.eagle.export.source import Source
from breakeven.eagle.shape import HeadShape


class Format(ABC):
    """Configuration and tensor names of one engine."""

    name: ClassVar[str]
    """As breakeven.engines has it."""
    with_embedding: ClassVar[bool]
    """Whether the folder holds the target's embedding too."""

    @abstractmethod
    def config(self, source: Source, k: int) -> dict[str, Any]:
        """config.json; `k` is the window that it was evaluated with.

        Raises UsageError, with what to change, for a head that the engine cannot serve.
        """

    @abstractmethod
    def shape(self, config: Mapping[str, Any], source: Source) -> HeadShape:
        """The head that the engine builds by a config.json of this source, with its own defaults."""

    def named(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Tensors by the engine's names, from the library's."""
        return dict(tensors)

    def library_names(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """And back."""
        return dict(tensors)

    @abstractmethod
    def notes(self, source: Source) -> Iterator[str]:
        """Which versions take this head as it is: a sentence for each thing that an older one leaves out."""
