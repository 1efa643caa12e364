"""Where did the last n tokens of a context stand last? Compiled loops for llama.cpp's ngram-simple."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._hash import FACTOR, LOW
from breakeven.drafters.compiler import kernel

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


@kernel
def _roll(ids: Int32s, n: int, hashes: Int64s) -> None:
    """hashes[p] is that of the n tokens before p, from n on: a polynomial in FACTOR, modulo 2**63."""
    power = 1
    for _ in range(n):
        power = (power * FACTOR) & LOW
    rolling = 0
    for p in range(1, len(ids) + 1):
        rolling = (rolling * FACTOR + int(ids[p - 1]) + 1) & LOW
        if p > n:
            rolling = (rolling - (int(ids[p - 1 - n]) + 1) * power) & LOW
        hashes[p] = rolling


@kernel
def _find(ids: Int32s, table: Int64s, stamp: int, p: int, n: int, hashed: int) -> int:
    """The slot of the n-gram that ends at p, or the free one where it belongs."""
    last_slot = len(table) - 1
    slot = (((hashed * FACTOR) & LOW) >> 24) & last_slot
    while True:
        q = int(table[slot]) - stamp
        if q <= 0:
            return slot
        same = 0
        while same < n and ids[q - 1 - same] == ids[p - 1 - same]:
            same += 1
        if same == n:
            return slot
        slot = (slot + 1) & last_slot


@kernel
def look_up_latest(
    ids: Int32s, starts: Int64s, outputs: Int64s, n: int, k: int,
    table: Int64s, hashes: Int64s, reach: Int32s, agreed: Int32s,
) -> None:  # fmt: skip
    """Fill reach and agreed, shape (positions,), from the latest occurrence of the last n tokens.

    It counts if it starts after the first token and ends before the last but one. reach is the number of
    tokens between it and the last one, which llama.cpp keeps apart; 0 if there is none. agreed is how many
    tokens the record goes on with as after the occurrence, up to k. table is of zeros, with a power of two of
    slots, more than any request's tokens; hashes has one element more than these.
    """
    stamp = 0
    at = 0
    for r in range(len(outputs)):
        tokens = ids[starts[r] : starts[r + 1]]
        output, end = int(outputs[r] - starts[r]), len(tokens)
        _roll(tokens, n, hashes)
        for p in range(min(n + 1, output), end):
            if p - 2 > n:
                table[_find(tokens, table, stamp, p - 2, n, int(hashes[p - 2]))] = stamp + p - 2
            if p < output:
                continue
            q = int(table[_find(tokens, table, stamp, p, n, int(hashes[p]))]) - stamp if p > n else 0
            same = 0
            while q > 0 and same < min(k, end - p) and tokens[q + same] == tokens[p + same]:
                same += 1
            reach[at] = p - 1 - q if q > 0 else 0
            agreed[at] = same
            at += 1
        stamp += end + 1
