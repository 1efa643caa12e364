"""Drafts from SGLang's n-gram trie, as compiled loops: a tree of as many nodes as `tokens` has places.

Semantics from SGLang 0.5.23, `kernels/jit/csrc/ngram_corpus/trie.cpp`. The arrays of the trie and of a place
in it are those of `_sglang_trie`; `size` is the number of anchors. tokens and parents, int32 (nodes,), come
in as padding (0 and −1) and are filled from the front, as in a Tree.
"""

from __future__ import annotations

import numpy as np

from breakeven.drafters._sglang_trie import CHILD, NEXT, TOKEN, USES, Floats, Int32s
from breakeven.drafters.compiler import kernel


@kernel
def _branch(tokens: Int32s, parents: Int32s, drafted: int, parent: int, token: int) -> int:
    """The draft's node for a token after `parent`; the number `drafted` if it is not there yet."""
    for i in range(drafted):
        if parents[i] == parent and tokens[i] == token:
            return i
    tokens[drafted], parents[drafted] = token, parent
    return drafted


@kernel
def draft_recent(
    nodes: Int32s, anchors: Int32s, size: int, breadths: Floats, tokens: Int32s, parents: Int32s
) -> None:
    """Fill the draft from the longest anchor on, each breadth first, most recently used children first.

    breadths: that of the root under an anchor of no token, the least, and how much it shrinks by each token.
    """
    drafted, budget = 0, len(tokens)
    at, queue, breadth = np.empty(budget + 1, np.int32), np.empty(budget + 1, np.int32), np.empty(budget + 1)
    for depth in range(size, 0, -1):
        at[0], queue[0], breadth[0] = -1, anchors[depth - 1, 0], 0.0
        breadth[0] = (breadths[0] - depth) * breadths[2] + breadths[1]
        first, last = 0, 1 if queue[0] != 0 else 0
        while first < last and drafted < budget:
            child = nodes[queue[first], CHILD]
            for _ in range(max(1, int(breadth[first]))):
                if child == 0 or drafted == budget:
                    break
                place = _branch(tokens, parents, drafted, int(at[first]), int(nodes[child, TOKEN]))
                drafted = max(drafted, place + 1)
                at[last], queue[last], breadth[last] = place, child, breadth[first] - breadths[2]
                last += 1
                child = nodes[child, NEXT]
            first += 1


@kernel
def _most_used(nodes: Int32s, parent: int, best: Int32s) -> int:
    """Fill `best` with the children most often used, the lower token first where they are even."""
    found = 0
    child = int(nodes[parent, CHILD])
    while child != 0:
        uses, token = nodes[child, USES], nodes[child, TOKEN]
        i = found
        while i > 0 and (
            nodes[best[i - 1], USES] < uses
            or (nodes[best[i - 1], USES] == uses and nodes[best[i - 1], TOKEN] > token)
        ):
            if i < len(best):
                best[i] = best[i - 1]
            i -= 1
        if i < len(best):
            best[i] = child
            found = min(found + 1, len(best))
        child = int(nodes[child, NEXT])
    return found


@kernel
def _rise(heap: Int32s, chances: Floats, hole: int, entry: int) -> None:
    while hole > 0 and chances[heap[(hole - 1) // 2]] < chances[entry]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = entry


@kernel
def _take_top(heap: Int32s, chances: Floats, size: int) -> int:
    """Take the likeliest of `size` entries.

    Ties fall as in libstdc++'s heap: the hole sinks to a leaf by way of the likelier child, the right one
    where they are even, and the last entry rises from there.
    """
    top, entry = int(heap[0]), int(heap[size - 1])
    size -= 1
    hole = 0
    while 2 * hole + 2 < size:
        child = 2 * hole + 2
        if chances[heap[child]] < chances[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if 2 * hole + 2 == size:
        heap[hole] = heap[size - 1]
        hole = size - 1
    if size > 0:
        _rise(heap, chances, hole, entry)
    return top


@kernel
def draft_frequent(
    nodes: Int32s, anchors: Int32s, size: int, breadth: int, tokens: Int32s, parents: Int32s
) -> None:
    """Fill the draft from the longest anchor on, the likeliest node first: a child's chance is its parent's
    times its share of the uses of the `breadth` most used children."""
    drafted, budget = 0, len(tokens)
    most = (budget + 1) * breadth
    heap, at, node = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    chances, best = np.empty(most), np.empty(breadth, np.int32)
    for depth in range(size, 0, -1):
        waiting, entries = 0, 0
        place, parent, chance = -1, int(anchors[depth - 1, 0]), 1.0
        while parent != 0 and drafted < budget:
            found = _most_used(nodes, parent, best)
            uses = 0.0
            for i in range(found):
                uses += nodes[best[i], USES]
            for i in range(found):
                at[entries], node[entries] = place, best[i]
                chances[entries] = nodes[best[i], USES] / uses * chance
                _rise(heap, chances, waiting, entries)
                entries += 1
                waiting += 1
            if waiting == 0:
                break
            top = _take_top(heap, chances, waiting)
            waiting -= 1
            parent, chance = int(node[top]), chances[top]
            place = _branch(tokens, parents, drafted, int(at[top]), int(nodes[parent, TOKEN]))
            drafted = max(drafted, place + 1)
