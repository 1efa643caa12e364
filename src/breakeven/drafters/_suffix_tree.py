"""A suffix tree that counts, and the memory that it grows in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._suffix_arrays import EDGES, MATCH_DEPTH, MAX_DEPTH, NODES, TreeArrays
from breakeven.drafters._suffix_drafts import feed, look_up_all
from breakeven.drafters._suffix_nodes import begin, clear, rehash, remove

SMALLEST = 1024
"""Rows at first."""


class SuffixTree:
    """Counts the token sequences of up to max_depth tokens in the texts fed to it, one text after another."""

    def __init__(self, max_depth: int) -> None:
        slots, state = np.zeros(SMALLEST, np.int32), np.zeros(MATCH_DEPTH + 1, np.int32)
        state[MAX_DEPTH] = max_depth
        self.arrays = TreeArrays(_rows(SMALLEST), _rows(SMALLEST), slots, state)
        clear(self.arrays)

    def clear(self) -> None:
        """Forget every text."""
        clear(self.arrays)

    def begin(self) -> None:
        """A text begins."""
        begin(self.arrays)

    def feed(self, text: NDArray[np.int32]) -> None:
        """The text is this so far; what was fed of it before is not fed again."""
        while not feed(self.arrays, text):
            self.grow()

    def look_up(self, tokens: NDArray[np.int32]) -> None:
        """The context goes on by tokens that are not fed."""
        look_up_all(self.arrays, tokens)

    def remove(self, text: NDArray[np.int32]) -> None:
        """Take out a whole text; none may be growing."""
        remove(self.arrays, text)

    def reserve(self, tokens: int) -> None:
        """Have rows for so many tokens more, as a rule enough. Rows that are not used take no memory."""
        needed = int(self.arrays.state[NODES]) + 2 * tokens
        if needed > len(self.arrays.nodes):
            self._resize(1 << (needed - 1).bit_length())

    def grow(self) -> None:
        """Twice the rows."""
        self._resize(2 * len(self.arrays.nodes))

    def _resize(self, rows: int) -> None:
        nodes, edges, _, state = self.arrays
        nodes, edges = _larger(nodes, int(state[NODES]), rows), _larger(edges, int(state[EDGES]), rows)
        self.arrays = TreeArrays(nodes, edges, np.zeros(rows, np.int32), state)
        rehash(self.arrays)


def _rows(n: int) -> NDArray[np.int32]:
    """Rows of 32 bytes, aligned so that none lies on two cache lines."""
    flat = np.empty(8 * n + 16, np.int32)
    first = -flat.ctypes.data % 64 // 4
    return flat[first : first + 8 * n].reshape(n, 8)


def _larger(rows: NDArray[np.int32], used: int, n: int) -> NDArray[np.int32]:
    larger = _rows(n)
    larger[:used] = rows[:used]
    return larger
