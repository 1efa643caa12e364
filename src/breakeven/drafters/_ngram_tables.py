"""Tables of the drafters that go by first occurrences: one pass over the tokens serves many settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from breakeven.drafters._ngram_kernels import look_up, new_index
from breakeven.drafters.base import Ids, Table
from breakeven.drafters.tokens import UNLIMITED, Tokens


@dataclass(frozen=True, slots=True)
class Lookups:
    """First occurrences at every output position, as Tokens.positions counts them; a row for each max_n."""

    rows: tuple[int, ...]
    """The max_n of each row, ascending."""
    least: int
    """Tokens of the shortest n-gram."""
    length: NDArray[np.int32]
    """Shape (positions,): tokens of the longest n-gram that occurred before, at most rows[-1]."""
    reach: NDArray[np.int32]
    """Shape (rows, positions): tokens after its first occurrence; 0 without one."""
    agreed: NDArray[np.int32]
    """Shape (rows, positions): the record goes on with so many of them; exact up to the k asked for."""

    def reach_of(self, min_n: int, max_n: int) -> NDArray[np.int32]:
        """The reach for n-grams of min_n to max_n tokens, max_n being one of rows; shape (positions,)."""
        reach: NDArray[np.int32] = self.reach[self.rows.index(max_n)]
        return reach if min_n <= self.least else np.where(self.length >= min_n, reach, np.int32(0))

    def table(self, reach: NDArray[np.int32], max_n: int, k: int, rooms: NDArray[np.int32] | None) -> Table:
        """Drafts of at most k tokens within this reach, and as many as there is room for (None: for all)."""
        drafted = np.minimum(reach, np.int32(min(k, UNLIMITED)))
        if rooms is not None:
            np.minimum(drafted, rooms, out=drafted)
        return Table(drafted, np.minimum(self.agreed[self.rows.index(max_n)], drafted))


def first_occurrences(tokens: Tokens, min_n: int, max_ns: Iterable[int], k: int) -> Lookups:
    """Look up n-grams of min_n tokens or more for drafts of at most k, with one row for each of max_ns."""
    rows = sorted(set(max_ns))
    index = new_index(int(np.diff(tokens.starts).max(initial=0)), np.array(rows, np.int64))
    positions = int(tokens.positions[-1])
    found = Lookups(
        tuple(rows),
        min_n,
        np.empty(positions, np.int32),
        np.empty((len(rows), positions), np.int32),
        np.empty((len(rows), positions), np.int32),
    )
    requests = tokens.ids, tokens.starts, tokens.outputs
    look_up(index, *requests, min(min_n, 2), min_n, k, found.length, found.reach, found.agreed)
    return found


def earlier_ends(context: Ids, n: int) -> NDArray[np.int64]:
    """Where the context's last n tokens stood before: the positions after each occurrence, ascending."""
    if len(context) <= n:
        return np.zeros(0, np.int64)
    windows = sliding_window_view(context[:-1], n)
    return np.flatnonzero((windows == context[-n:]).all(axis=1)) + n
