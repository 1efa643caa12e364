"""The requests of a record, and the decode steps that each setting would have taken on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.base import Drafter


@dataclass(frozen=True, slots=True)
class Requests:
    """In the record's order; arrays of shape (requests,)."""

    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    category: NDArray[np.int64]
    """Index into `categories`."""
    categories: tuple[str, ...]
    first: int
    """Output tokens of each request before its first step: 1 where the prefill gives one, else 0."""
    degenerate: int = 0
    """How many outputs end in a loop."""

    @property
    def emitted_tokens(self) -> NDArray[np.int64]:
        """Output tokens that come out of steps; shape (requests,)."""
        return np.maximum(self.output_tokens - self.first, 0)

    @property
    def context_tokens(self) -> float:
        """In the cache of a sequence in decode, the mean over all its plain steps."""
        steps = self.emitted_tokens
        total = float(steps.sum())
        return float(((self.prompt_tokens + self.output_tokens / 2) * steps).sum() / total) if total else 0.0


@dataclass(frozen=True, slots=True)
class SettingSteps:
    """The steps of one setting, request after request."""

    drafter: Drafter[Any]
    counts: NDArray[np.int64]
    """Steps of each request; shape (requests,)."""
    drafted: NDArray[np.int32]
    """Shape (steps,)."""
    accepted: NDArray[np.int32]
    """Shape (steps,); clipped at the end of the record."""
