"""A suffix tree of bounded depth that counts, with the nodes of a suffix automaton: its compiled loops.

Arctic Inference counts every sequence of up to max_depth tokens. Sequences that ended at the same places so
far have equal counts, and equal children in equal order; so one node stands for all of them, as in a suffix
automaton (Blumer et al., The smallest automaton recognizing the subwords of a text, 1985). They are suffixes
of the longest of them and are longer than those of the node that LINK names. A token that is appended
changes the nodes on one short chain of links where Arctic's tree changes max_depth of them.

A node's children are those of its sequences that are shorter than max_depth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._suffix_arrays import (
    ACTIVE,
    ACTIVE_DEPTH,
    CHAIN,
    COUNT,
    DEPTH,
    EDGES,
    FED,
    FIRST_TOKEN,
    FREE_EDGE,
    FREE_NODE,
    HEAD,
    LINK,
    MATCH,
    MATCH_DEPTH,
    MAX_DEPTH,
    NODES,
    NONE,
    OWNER,
    ROOT,
    TAIL,
    TOKEN,
    TreeArrays,
)
from breakeven.drafters._suffix_children import (
    ABSENT,
    add_child,
    child_node,
    copy_children,
    drop_child,
    drop_list,
    find_child,
    lead_to,
    lower_child,
    raise_child,
    slot_of,
)
from breakeven.drafters.compiler import inlined, lean_kernel


@lean_kernel
def clear(tree: TreeArrays) -> None:
    """Forget everything. On new arrays: state[NODES] is 0, and slots are NONE."""
    for edge in range(1, tree.state[EDGES]):
        if tree.edges[edge, OWNER] >= 0:
            tree.slots[slot_of(tree, tree.edges[edge, OWNER], tree.edges[edge, TOKEN])] = NONE
    tree.state[NODES], tree.state[FREE_NODE] = 0, -1
    tree.state[EDGES], tree.state[FREE_EDGE] = 1, NONE
    _new_node(tree, 0, -1, 0)
    begin(tree)


@lean_kernel
def begin(tree: TreeArrays) -> None:
    """A text begins; what is in the tree stays."""
    tree.state[FED] = 0
    tree.state[ACTIVE] = tree.state[MATCH] = ROOT
    tree.state[ACTIVE_DEPTH] = tree.state[MATCH_DEPTH] = 0


@lean_kernel
def rehash(tree: TreeArrays) -> None:
    """Fill the slots, which are empty."""
    for edge in range(1, tree.state[EDGES]):
        if tree.edges[edge, OWNER] >= 0:
            slot = slot_of(tree, tree.edges[edge, OWNER], tree.edges[edge, TOKEN])
            tree.edges[edge, CHAIN] = tree.slots[slot]
            tree.slots[slot] = edge


@inlined
def suffix_node(tree: TreeArrays, node: int, depth: int) -> int:
    """The node of the last `depth` tokens of a node's sequences."""
    while node != ROOT and tree.nodes[tree.nodes[node, LINK], DEPTH] >= depth:
        node = tree.nodes[node, LINK]
    return node


@inlined
def append(tree: TreeArrays, token: int) -> bool:
    """Append a token to the text that grows. False, and nothing is done, if the arrays are too small."""
    depth = min(tree.state[ACTIVE_DEPTH], tree.state[MAX_DEPTH] - 1)
    start = suffix_node(tree, tree.state[ACTIVE], depth)
    node, length, child = _longest_with_child(tree, start, depth, token)
    target = child_node(tree, node, child) if child != ABSENT else ROOT
    split = child != ABSENT and tree.nodes[target, DEPTH] != length + 1
    if not _fits(tree, 2 * (depth - length + 1) + (tree.nodes[target, COUNT] + 1 if split else 0)):
        return False
    end = node if child != ABSENT else -1
    active = target
    if start != end:
        active = _new_node(tree, depth + 1, target, 0)
        _add_children(tree, start, end, token, active)
    clone = _split(tree, target, length + 1) if split else target
    if active == target:
        active = clone
    else:
        tree.nodes[active, LINK] = clone
    if child != ABSENT:
        _raise_children(tree, node, child, token, target, clone)
    tree.state[ACTIVE], tree.state[ACTIVE_DEPTH] = active, depth + 1
    _add_to_counts(tree, active, 1)
    return True


@inlined
def _longest_with_child(tree: TreeArrays, node: int, depth: int, token: int) -> tuple[int, int, int]:
    """Of the last `depth` tokens of the node's sequences, the longest suffix that the token has followed.

    Returns its node, its length, and the child as find_child does: ABSENT with the root if there is none.
    """
    child = find_child(tree, node, token)
    while child == ABSENT and node != ROOT:
        node = tree.nodes[node, LINK]
        depth = tree.nodes[node, DEPTH]
        child = find_child(tree, node, token)
    return node, depth, child


@inlined
def _fits(tree: TreeArrays, new_edges: int) -> bool:
    return bool(tree.state[NODES] + 2 <= len(tree.nodes) and tree.state[EDGES] + new_edges <= len(tree.edges))


@inlined
def _new_node(tree: TreeArrays, depth: int, link: int, count: int) -> int:
    node = int(tree.state[FREE_NODE])
    if node >= 0:
        tree.state[FREE_NODE] = tree.nodes[node, LINK]
    else:
        node = int(tree.state[NODES])
        tree.state[NODES] = node + 1
    tree.nodes[node, DEPTH] = depth
    tree.nodes[node, LINK] = link
    tree.nodes[node, COUNT] = count
    tree.nodes[node, FIRST_TOKEN] = -1
    tree.nodes[node, HEAD] = tree.nodes[node, TAIL] = NONE
    return node


@inlined
def _add_children(tree: TreeArrays, node: int, end: int, token: int, target: int) -> None:
    """Add a child to each node on the chain of links from `node` to before `end`; -1 is behind the root."""
    while node != end:
        add_child(tree, node, token, target)
        node = tree.nodes[node, LINK]


@inlined
def _add_to_counts(tree: TreeArrays, node: int, more: int) -> None:
    while node != ROOT:
        tree.nodes[node, COUNT] += more
        node = tree.nodes[node, LINK]


@lean_kernel
def _split(tree: TreeArrays, node: int, depth: int) -> int:
    """A new node for a node's sequences up to `depth` tokens, now that they end where the longer do not."""
    shorter = _new_node(tree, depth, tree.nodes[node, LINK], tree.nodes[node, COUNT])
    copy_children(tree, node, shorter)
    tree.nodes[node, LINK] = shorter
    if depth == tree.state[MAX_DEPTH] - 1:
        drop_list(tree, node)
        tree.nodes[node, FIRST_TOKEN] = -1
    return shorter


@inlined
def _raise_children(tree: TreeArrays, node: int, child: int, token: int, target: int, clone: int) -> None:
    """Count the token in each node from `node` to the root, and lead it to `clone` where it led to `target`.

    The root's children are not counted: no draft starts there.
    """
    moving = clone != target
    while node != ROOT:
        if moving:
            moving = lead_to(tree, node, child, target, clone)
        raise_child(tree, node, child)
        node = tree.nodes[node, LINK]
        if node != ROOT or moving:
            child = find_child(tree, node, token)
    if moving:
        lead_to(tree, ROOT, child, target, clone)


@lean_kernel
def remove(tree: TreeArrays, text: NDArray[np.int32]) -> None:
    """Take out a whole text that was appended from the root; none may be growing."""
    active, depth = ROOT, 0
    for token in text:
        node = suffix_node(tree, active, min(depth, tree.state[MAX_DEPTH] - 1))
        following = child_node(tree, node, find_child(tree, node, token))
        while node != ROOT:
            lower_child(tree, node, token)
            node = tree.nodes[node, LINK]
        if tree.nodes[child_node(tree, ROOT, find_child(tree, ROOT, token)), COUNT] == 1:
            drop_child(tree, ROOT, token)
        _free_unused(tree, active)
        _add_to_counts(tree, following, -1)
        active, depth = following, min(depth + 1, tree.state[MAX_DEPTH])
    _free_unused(tree, active)
    begin(tree)


@lean_kernel
def _free_unused(tree: TreeArrays, node: int) -> None:
    """Free the nodes without an occurrence on a chain of links."""
    while node != ROOT and tree.nodes[node, COUNT] == 0:
        link = tree.nodes[node, LINK]
        drop_list(tree, node)
        tree.nodes[node, LINK] = tree.state[FREE_NODE]
        tree.state[FREE_NODE] = node
        node = link


@inlined
def look_up(tree: TreeArrays, token: int) -> None:
    """The context goes on by a token: find the longest suffix of it in the tree."""
    depth = min(tree.state[MATCH_DEPTH], tree.state[MAX_DEPTH] - 1)
    node = suffix_node(tree, tree.state[MATCH], depth)
    node, depth, child = _longest_with_child(tree, node, depth, token)
    tree.state[MATCH] = child_node(tree, node, child) if child != ABSENT else ROOT
    tree.state[MATCH_DEPTH] = depth + 1 if child != ABSENT else 0
