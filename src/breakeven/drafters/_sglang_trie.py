"""SGLang's n-gram trie as compiled loops: a counted trie that forgets its least recently used nodes.

Semantics from SGLang 0.5.23, `kernels/jit/csrc/ngram_corpus/trie.cpp`. The arrays of a trie:
- nodes, int32 (allocated, 10), one row per node, columns below. Node 0 is the root, and stands for "none" in
  every link. All other live nodes form a ring by last use, with the root as its seam.
- buckets, int32 (a power of two,): the first node of each chain of (parent, token) hashes.
- counts, int64 (3,): rows ever used, first freed row, live nodes; the root is in the first and the last.

A request's place in the trie, for at most `depth` tokens:
- anchors, int32 (depth, 2): row d − 1 is the node that the last d tokens lead to, and its version then.
- progress, int64 (2,): how many anchors there are, and the length of the context that they stand for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.compiler import kernel

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

COLUMNS = 10
TOKEN, PARENT, USES, VERSION = 0, 1, 2, 3
"""USES is how often insertions passed a node, 0 for a freed one; VERSION counts how often it was freed."""
CHILD, NEXT, BEFORE = 4, 5, 6
"""The most recently used child; the siblings used just before and just after this node."""
OLDER, NEWER = 7, 8
CHAIN = 9
"""The next node of the same bucket, or the next freed row."""
USED, FREED, LIVE = 0, 1, 2


@kernel
def _bucket(buckets: Int32s, parent: int, token: int) -> int:
    mixed = parent * 0x9E3779B + token * 0x5EBCA6B
    return (mixed ^ (mixed >> 17)) & (len(buckets) - 1)


@kernel
def _find(nodes: Int32s, buckets: Int32s, parent: int, token: int) -> int:
    node = buckets[_bucket(buckets, parent, token)]
    while node != 0 and (nodes[node, PARENT] != parent or nodes[node, TOKEN] != token):
        node = nodes[node, CHAIN]
    return int(node)


@kernel
def index(nodes: Int32s, buckets: Int32s, counts: Int64s) -> None:
    """Put all live nodes into empty buckets."""
    for node in range(1, counts[USED]):
        if nodes[node, USES] > 0:
            b = _bucket(buckets, int(nodes[node, PARENT]), int(nodes[node, TOKEN]))
            nodes[node, CHAIN] = buckets[b]
            buckets[b] = node


@kernel
def _unlink_sibling(nodes: Int32s, node: int) -> None:
    after, before = nodes[node, NEXT], nodes[node, BEFORE]
    if before == 0:
        nodes[nodes[node, PARENT], CHILD] = after
    else:
        nodes[before, NEXT] = after
    if after != 0:
        nodes[after, BEFORE] = before


@kernel
def _link_sibling(nodes: Int32s, node: int) -> None:
    parent = nodes[node, PARENT]
    first = nodes[parent, CHILD]
    nodes[node, NEXT], nodes[node, BEFORE] = first, 0
    if first != 0:
        nodes[first, BEFORE] = node
    nodes[parent, CHILD] = node


@kernel
def _unlink_use(nodes: Int32s, node: int) -> None:
    older, newer = nodes[node, OLDER], nodes[node, NEWER]
    nodes[older, NEWER] = newer
    nodes[newer, OLDER] = older


@kernel
def _link_use(nodes: Int32s, node: int) -> None:
    newest = nodes[0, OLDER]
    nodes[node, OLDER], nodes[node, NEWER] = newest, 0
    nodes[newest, NEWER] = node
    nodes[0, OLDER] = node


@kernel
def _add(nodes: Int32s, buckets: Int32s, counts: Int64s, parent: int, token: int) -> int:
    node = int(counts[FREED])
    if node != 0:
        counts[FREED] = nodes[node, CHAIN]
    else:
        node = int(counts[USED])
        counts[USED] += 1
    counts[LIVE] += 1
    nodes[node, TOKEN], nodes[node, PARENT] = token, parent
    nodes[node, USES], nodes[node, CHILD] = 1, 0
    nodes[node, OLDER], nodes[node, NEWER] = node, node
    bucket = _bucket(buckets, parent, token)
    nodes[node, CHAIN] = buckets[bucket]
    buckets[bucket] = node
    _link_sibling(nodes, node)
    return node


@kernel
def _forget_oldest(nodes: Int32s, buckets: Int32s, counts: Int64s) -> None:
    """Free the node used longest ago. It is a leaf: whoever uses a node uses the way to it just after."""
    node = nodes[0, NEWER]
    _unlink_use(nodes, node)
    _unlink_sibling(nodes, node)
    bucket = _bucket(buckets, int(nodes[node, PARENT]), int(nodes[node, TOKEN]))
    if buckets[bucket] == node:
        buckets[bucket] = nodes[node, CHAIN]
    else:
        before = buckets[bucket]
        while nodes[before, CHAIN] != node:
            before = nodes[before, CHAIN]
        nodes[before, CHAIN] = nodes[node, CHAIN]
    nodes[node, USES] = 0
    nodes[node, VERSION] += 1
    nodes[node, CHAIN] = counts[FREED]
    counts[FREED] = node
    counts[LIVE] -= 1


@kernel
def insert(nodes: Int32s, buckets: Int32s, counts: Int64s, window: Int32s, depth: int, capacity: int) -> None:
    """Count every suffix of the window, from the longest to the last token, to at most `depth` tokens."""
    for start in range(len(window)):
        end = min(start + depth, len(window))
        while end - start > capacity - counts[LIVE]:
            _forget_oldest(nodes, buckets, counts)
        node = 0
        for i in range(start, end):
            child = _find(nodes, buckets, node, int(window[i]))
            if child == 0:
                child = _add(nodes, buckets, counts, node, int(window[i]))
            else:
                nodes[child, USES] += 1
                _unlink_sibling(nodes, child)
                _link_sibling(nodes, child)
            node = child
        while node != 0:
            _unlink_use(nodes, node)
            _link_use(nodes, node)
            node = int(nodes[node, PARENT])


@kernel
def _step(nodes: Int32s, buckets: Int32s, anchors: Int32s, progress: Int64s, token: int) -> None:
    """Each anchor goes on by a token, and one begins. A suffix that was not there stays out until looked up
    anew, though it may have been inserted since."""
    size = min(int(progress[0]) + 1, len(anchors))
    for d in range(size - 1, -1, -1):
        parent = int(anchors[d - 1, 0]) if d > 0 else 0
        node = _find(nodes, buckets, parent, token) if d == 0 or parent != 0 else 0
        anchors[d, 0], anchors[d, 1] = node, nodes[node, VERSION]
    progress[0] = size


@kernel
def follow(
    nodes: Int32s, buckets: Int32s, anchors: Int32s, progress: Int64s, window: Int32s, total: int
) -> None:
    """Bring the anchors to a context of `total` tokens that ends with the window.

    They go on from the step before, unless a node of theirs was forgotten, or the window does not hold all
    that came since: then they are looked up anew.
    """
    appended = total - int(progress[1])
    known = appended <= len(window)
    for d in range(progress[0]):
        if nodes[anchors[d, 0], VERSION] != anchors[d, 1]:
            known = False
    if not known:
        progress[0] = 0
        appended = len(window)
    for i in range(len(window) - appended, len(window)):
        _step(nodes, buckets, anchors, progress, int(window[i]))
    progress[1] = total
