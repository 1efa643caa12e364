"""Tokens: some recorded requests as flat arrays, the form in which compiled loops take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Tokens:
    """Requests r = 0 … n − 1, each ids[starts[r]:starts[r + 1]], of which the prompt ends at outputs[r]."""

    ids: NDArray[np.int32]
    """Prompt and output of each request, one after another; shape (tokens,)."""
    starts: NDArray[np.int64]
    """Shape (n + 1,); the last is len(ids)."""
    outputs: NDArray[np.int64]
    """Where each output begins in ids; shape (n,)."""
    max_tokens: NDArray[np.int64]
    """Output tokens that each request asked for at most; 2**31 − 1 where unknown. Shape (n,)."""
    max_model_len: NDArray[np.int64]
    """Prompt and output that each request's server has room for; 2**31 − 1 where unknown. Shape (n,)."""

    recorded: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    """Acceptance measured elsewhere, by the name of its source: draft tokens accepted if the context ended
    before each output token, −1 where not recorded. Each of shape (positions,)."""

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where each request's output begins in a Table; shape (n + 1,), the last is the Table's length."""
        lengths = self.starts[1:] - self.outputs
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])

    @property
    def context_tokens(self) -> NDArray[np.int64]:
        """Tokens of prompt and output before each output token; shape (positions,)."""
        begins = self.positions
        return np.arange(begins[-1]) + self.spread(self.outputs - self.starts[:-1] - begins[:-1])

    @property
    def remaining(self) -> NDArray[np.int64]:
        """Output tokens from each output position on, itself included; shape (positions,)."""
        positions = self.positions
        return self.spread(positions[1:]) - np.arange(positions[-1])

    def spread(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """A value of each request, shape (n,), at each of its output positions; shape (positions,)."""
        return np.repeat(values, self.starts[1:] - self.outputs)

    def contexts(self) -> Iterator[tuple[NDArray[np.int32], int]]:
        """Each request's prompt and output, and how many of these tokens are prompt."""
        for start, output, end in zip(self.starts[:-1], self.outputs, self.starts[1:], strict=True):
            yield self.ids[start:end], int(output - start)


UNLIMITED = 2**31 - 1
NOT_RECORDED = -1
"""In Tokens.recorded."""


def flat(
    requests: Sequence[tuple[Sequence[int] | NDArray[np.int32], Sequence[int] | NDArray[np.int32]]],
    max_tokens: Sequence[int | None] | None = None,
    max_model_len: Sequence[int | None] | None = None,
    recorded: Mapping[str, NDArray[np.int32]] | None = None,
) -> Tokens:
    """(prompt ids, output ids) pairs as Tokens."""
    starts = np.zeros(len(requests) + 1, np.int64)
    outputs = np.zeros(len(requests), np.int64)
    for r, (prompt, output) in enumerate(requests):
        outputs[r] = starts[r] + len(prompt)
        starts[r + 1] = outputs[r] + len(output)
    ids = np.empty(int(starts[-1]), np.int32)
    for r, (prompt, output) in enumerate(requests):
        ids[starts[r] : outputs[r]] = prompt
        ids[outputs[r] : starts[r + 1]] = output
    n = len(requests)
    return Tokens(ids, starts, outputs, _limits(max_tokens, n), _limits(max_model_len, n), recorded or {})


def _limits(values: Sequence[int | None] | None, n: int) -> NDArray[np.int64]:
    return np.array([UNLIMITED if v is None else v for v in values or [None] * n], np.int64)
