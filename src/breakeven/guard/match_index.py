"""LongestMatch: where did the end of a growing context stand first, and what came then? One per request.

It keeps the request's tokens in replay's own index (drafters/_ngram_kernels), to which each token is added
once, in time that is constant on average and does not grow with the context. As in replay's Lookups, and in
vLLM, the answer is the *first* occurrence of the longest run of last tokens that occurred before. When the
arrays are full, all is learned anew in arrays of twice the size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._ngram_kernels import Index, learn, new_index, renew

Int32s = NDArray[np.int32]

LEAST_TOKENS = 1024
"""That an index has place for."""
BYTES_PER_TOKEN = 68
"""Of its capacity, which is at most twice the context (or LEAST_TOKENS): 4 for the token, 32 in the arrays by
position, and 32 in two hash tables of four slots each."""
ROOT = 2
"""Most tokens that the index hashes as one."""


class Match(NamedTuple):
    """What the last tokens of a context were found to repeat."""

    length: int
    """Tokens of the longest run that ends the context and occurred before, at most most_match; 0 for none."""
    period: int
    """Tokens between the end of its first occurrence and that of the context; 0 for none."""
    draft: Int32s
    """What followed the first occurrence, up to the end of the context: a view; shape (tokens,)."""


class LongestMatch:
    """The index of one request."""

    def __init__(self, least_match: int, most_match: int, tokens: int = 0) -> None:
        """Matches have least_match to most_match tokens; `tokens` are soon to be appended."""
        self._least = least_match
        self._root = min(ROOT, least_match)
        self._caps = np.array([most_match], np.int64)
        self._count = 0
        self._ids = np.zeros(capacity(tokens), np.int32)
        self._index = self._learned()

    def __len__(self) -> int:
        """Tokens of the context."""
        return self._count

    @property
    def tokens(self) -> Int32s:
        """The context: a view, shape (len,)."""
        return self._ids[: self._count]

    @property
    def buffer(self) -> Int32s:
        """The context, and what there is place for behind it: a view, shape (capacity,)."""
        return self._ids

    def append(self, ids: Int32s) -> None:
        """The context goes on with these; shape (tokens,)."""
        begin, end = self._count, self._count + len(ids)
        if end > len(self._ids):
            self._grow(end)
        self._ids[begin:end] = ids
        self._count = end
        learn(self._index, self._ids, self._root, begin + 1, end + 1)

    def match(self, most: int) -> Match:
        """The longest match of the context's end, and at most so many tokens that followed it."""
        end = self._count
        length = int(self._index.length[end])
        if length < self._least:
            return Match(0, 0, self._ids[:0])
        at = int(self._index.first[0, end])
        return Match(length, end - at, self._ids[at : min(at + max(most, 0), end)])

    def _grow(self, tokens: int) -> None:
        """Place for so many."""
        grown = np.zeros(capacity(tokens), np.int32)
        grown[: self._count] = self.tokens
        self._ids = grown
        self._index = self._learned()

    def _learned(self) -> Index:
        """A new index that has learned the context."""
        index = new_index(len(self._ids), self._caps)
        renew(index, len(self._ids))
        learn(index, self._ids, self._root, 0, self._count + 1)
        return index


def capacity(tokens: int) -> int:
    """Tokens that an index for so many has place for: a power of two, as its hash tables have."""
    return max(LEAST_TOKENS, 1 << max(tokens - 1, 0).bit_length())
