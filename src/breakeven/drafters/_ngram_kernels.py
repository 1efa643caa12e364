"""Where did the last n tokens of a context first stand? Compiled loops that answer it for every context.

The contexts of a request are the prefixes of its tokens, so one pass over them answers for all. It keeps a
trie of the contexts read backwards: a path of n tokens from the root is an n-gram. A node is where an n-gram
was preceded by two different tokens, and edges are as long as that allows. Contexts come in order of length,
so that whichever made an edge is the first occurrence of all n-grams on it. The first one or two tokens of a
path (the root gram), and the token at each node, are looked up by hash; a hit is checked token by token.

`learn` is long because a call that numba does not inline counts references to every array that it is given:
with the descent as a function of its own, the whole takes three times as long.
"""

from __future__ import annotations

from secrets import randbits
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._hash import LOW
from breakeven.drafters.compiler import kernel

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

LEAF = 2**31 - 1
"""The depth of an edge that ends in a leaf."""


class Index(NamedTuple):
    """The trie of one request of fewer than `size` tokens; the arrays are used again for the next.

    A position p stands for the context of p tokens, and for the n-grams that end there. Node 2p is the leaf
    that this context added, 2p + 1 the inner node. Slots hold the request's stamp + a position or node; what
    earlier requests left there is at most the stamp, and counts as free.
    """

    state: Int64s
    """Shape (4,): this request's stamp, how many numbers it takes, the shift from a hash to a slot, and
    the hash's factor: a random one, as who knew it could write a prompt that fills one place of the slots."""
    roots: Int32s
    """Shape (slots,), a power of two: the first position of each root gram."""
    tops: Int32s
    """Shape (size,): at the first position of a root gram, the node nearest to the root on its path."""
    inner: Int32s
    """Shape (size, 2): the first position and the depth of the inner node that each position added."""
    parents: Int32s
    """Shape (2 × size,): the node above each node that hangs on one; 0 is the root."""
    kids: Int32s
    """Shape (slots,): the nodes that hang on others, by parent and the token between."""
    repeated: Int32s
    """Shape (size,): scratch, the positions whose root gram occurred before."""
    caps: Int64s
    """Shape (rows,), ascending: the longest n-grams that are asked for."""
    length: Int32s
    """Shape (size,): tokens of the longest n-gram that occurred before, at most caps[-1]; 0 without any."""
    first: Int32s
    """Shape (rows, size): where the n-gram of min(length, caps[row]) tokens first ended, if length > 0."""


def new_index(longest: int, caps: Int64s) -> Index:
    """An Index for requests of at most `longest` tokens."""
    size, slots = longest + 1, 1 << _slot_bits(longest)
    return Index(
        state=np.array([0, 0, 0, 2 * randbits(61) + 1], np.int64),
        roots=np.zeros(slots, np.int32),
        tops=np.zeros(size, np.int32),
        inner=np.zeros((size, 2), np.int32),
        parents=np.zeros(2 * size, np.int32),
        kids=np.zeros(slots, np.int32),
        repeated=np.zeros(size, np.int32),
        caps=caps,
        length=np.zeros(size, np.int32),
        first=np.zeros((len(caps), size), np.int32),
    )


@kernel
def _slot_bits(tokens: int) -> int:
    """Enough that at most half of the slots fill: each position hangs at most two nodes on others."""
    bits = 4
    while (1 << bits) < 4 * tokens:
        bits += 1
    return bits


@kernel
def renew(index: Index, tokens: int) -> None:
    """Forget the last request: one of at most so many tokens comes."""
    stamp, numbers = int(index.state[0] + index.state[1]), 2 * tokens + 2
    if stamp > LEAF - numbers:
        index.roots[:] = 0
        index.kids[:] = 0
        stamp = 0
    index.state[0] = stamp
    index.state[1] = numbers
    index.state[2] = 63 - _slot_bits(tokens)


@kernel
def _hash(a: int, b: int, factor: int) -> int:
    return ((a << 31 | b) * factor) & LOW


@kernel
def _find_roots(index: Index, ids: Int32s, root: int, begin: int, end: int) -> int:
    """The last row of first gets the first position of each root gram; returns how many are repeated."""
    roots, tops, repeated, first = index.roots, index.tops, index.repeated, index.first[-1]
    stamp, shift, factor = int(index.state[0]), int(index.state[2]), int(index.state[3])
    last_slot = (1 << (63 - shift)) - 1
    count = 0
    for p in range(max(begin, root), end):
        a, b = int(ids[p - root]), int(ids[p - 1])
        slot = _hash(a, b, factor) >> shift
        while True:
            q = int(roots[slot]) - stamp
            if q <= 0:
                q = p
            if (ids[q - root] == a) & (ids[q - 1] == b):
                break
            slot = (slot + 1) & last_slot
        roots[slot] = stamp + q
        first[p] = q
        tops[p] = 2 * p
        repeated[count] = p
        count += int(q != p)
    return count


@kernel
def _find_kid(
    ids: Int32s, inner: Int32s, parents: Int32s, kids: Int32s,
    stamp: int, shift: int, factor: int, node: int, depth: int, token: int,
) -> int:  # fmt: skip
    """The slot of what hangs on `node`, whose depth is given, by the token; or the free one for it."""
    slot = _hash(node, token, factor) >> shift
    while True:
        kid = int(kids[slot]) - stamp
        if kid <= 0:
            return slot
        q = inner[kid >> 1, 0] if kid & 1 else kid >> 1
        if parents[kid] == node and ids[q - 1 - depth] == token:
            return slot
        slot = (slot + 1) & ((1 << (63 - shift)) - 1)


@kernel
def learn(index: Index, ids: Int32s, root: int, begin: int, end: int) -> None:
    """Fill length and first at the positions begin … end − 1; ids has end − 1 tokens or more.

    A request's positions come in order, any number at a time. root is 1 or 2, and at most caps[0]. Where a
    match of full length goes on, the answer is that of its first occurrence, and the trie has it all.
    """
    caps, lengths, first, repeated = index.caps, index.length, index.first, index.repeated
    tops, inner, parents, kids = index.tops, index.inner, index.parents, index.kids
    stamp, shift, factor = int(index.state[0]), int(index.state[2]), int(index.state[3])
    most, rows = int(caps[-1]), len(caps)
    lengths[begin:end] = 0
    for i in range(_find_roots(index, ids, root, begin, end)):
        p = int(repeated[i])
        q = int(first[rows - 1, p - 1])
        if lengths[p - 1] == most and ids[q] == ids[p - 1]:
            for row in range(rows):
                first[row, p] = first[row, q + 1] if lengths[q + 1] >= caps[row] else q + 1
            lengths[p] = most
            continue
        top = int(first[rows - 1, p])
        node, parent, slot = int(tops[top]), 0, 0
        row, above, depth = 0, 0, root
        while node > 0:
            q, below = node >> 1, LEAF
            if node & 1:
                q, below = int(inner[node >> 1, 0]), int(inner[node >> 1, 1])
            while row < rows and caps[row] <= above:
                row += 1
            for r in range(row, rows):
                first[r, p] = q
            limit = min(below, most, q)
            while depth < limit and ids[q - 1 - depth] == ids[p - 1 - depth]:
                depth += 1
            if depth == most:
                break
            if depth < below:  # the edge splits at a new inner node
                new = 2 * p + 1
                if parent == 0:
                    tops[top] = new
                else:
                    kids[slot] = stamp + new
                inner[p, 0], inner[p, 1] = q, depth
                parents[new] = parent
                if depth < q:
                    parents[node] = new
                    token = int(ids[q - 1 - depth])
                    free = _find_kid(ids, inner, parents, kids, stamp, shift, factor, new, depth, token)
                    kids[free] = stamp + node
                node = new
            token = int(ids[p - 1 - depth])
            slot = _find_kid(ids, inner, parents, kids, stamp, shift, factor, node, depth, token)
            parent, node = node, int(kids[slot]) - stamp
            if node <= 0:
                kids[slot] = stamp + 2 * p
                parents[2 * p] = parent
                break
            above = depth
            depth += 1
        lengths[p] = depth


@kernel
def _agree(
    index: Index, ids: Int32s, output: int, least: int, k: int,
    length: Int32s, reach: Int32s, agreed: Int32s,
) -> None:  # fmt: skip
    """Fill what Lookups holds for one request, whose first output token is ids[output]."""
    lengths, first = index.length, index.first
    end = len(ids)
    for row in range(len(first)):
        following, same = -1, 0
        for p in range(end - 1, output - 1, -1):
            i = p - output
            length[i] = lengths[p]
            q = int(first[row, p]) if lengths[p] >= least else 0
            if ids[q] != ids[p]:
                same = 0
            elif following == q + 1:
                same += 1
            else:
                same = 1
                while same < min(k, end - p) and ids[q + same] == ids[p + same]:
                    same += 1
            following = q
            agreed[row, i] = same
            reach[row, i] = p - q if q > 0 else 0


@kernel
def look_up(
    index: Index, ids: Int32s, starts: Int64s, outputs: Int64s, root: int, least: int, k: int,
    length: Int32s, reach: Int32s, agreed: Int32s,
) -> None:  # fmt: skip
    """Fill the arrays of Lookups for all requests."""
    at = 0
    for r in range(len(outputs)):
        tokens = ids[starts[r] : starts[r + 1]]
        output = int(outputs[r] - starts[r])
        to = at + len(tokens) - output
        renew(index, len(tokens))
        learn(index, tokens, root, 0, len(tokens))
        _agree(index, tokens, output, least, k, length[at:to], reach[:, at:to], agreed[:, at:to])
        at = to
