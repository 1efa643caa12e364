"""The children of a suffix tree's nodes, kept in Arctic Inference's order by compiled loops.

Children stand in a list by falling count. A new child goes to the end. When a child's count rises to or
above the count that its previous sibling has, it moves before the first of those with that count: the first
child of a group of equal counts becomes the first of the next higher group, any other its last. When a count
falls, the child moves behind its group, before the next lower one.
"""

from __future__ import annotations

from breakeven.drafters._suffix_arrays import (
    CHAIN,
    EDGE_COUNT,
    EDGES,
    FIRST_COUNT,
    FIRST_NODE,
    FIRST_TOKEN,
    FREE_EDGE,
    HEAD,
    LEADER,
    NEXT,
    NODE,
    NONE,
    OWNER,
    PREVIOUS,
    TAIL,
    TOKEN,
    TreeArrays,
)
from breakeven.drafters.compiler import inlined, lean_kernel

ABSENT, FIRST = -1, 0
"""What find_child returns other than an edge."""


@inlined
def slot_of(tree: TreeArrays, owner: int, token: int) -> int:
    mixed = int(owner) * 0x2545F491 + int(token) * 0x1B873593
    return (mixed ^ (mixed >> 17)) & (len(tree.slots) - 1)


@inlined
def find_child(tree: TreeArrays, node: int, token: int) -> int:
    """FIRST if the token leads to the node's first child, an edge if to another, ABSENT if to none."""
    if tree.nodes[node, FIRST_TOKEN] == token:
        return FIRST
    if tree.nodes[node, HEAD] == NONE:
        return ABSENT
    edge = tree.slots[slot_of(tree, node, token)]
    while edge != NONE and (tree.edges[edge, TOKEN] != token or tree.edges[edge, OWNER] != node):
        edge = tree.edges[edge, CHAIN]
    return int(edge) if edge != NONE else ABSENT


@inlined
def child_node(tree: TreeArrays, node: int, child: int) -> int:
    return int(tree.nodes[node, FIRST_NODE] if child == FIRST else tree.edges[child, NODE])


@lean_kernel
def lead_to(tree: TreeArrays, node: int, child: int, old: int, new: int) -> bool:
    """Another node stands for the child, if it was the old one: was it?"""
    if child_node(tree, node, child) != old:
        return False
    if child == FIRST:
        tree.nodes[node, FIRST_NODE] = new
    edge = tree.nodes[node, HEAD] if child == FIRST else child
    if edge != NONE:
        tree.edges[edge, NODE] = new
    return True


@inlined
def add_child(tree: TreeArrays, node: int, token: int, target: int) -> None:
    """Append a child that has occurred once. Takes two free edges at most."""
    if tree.nodes[node, FIRST_TOKEN] < 0:
        tree.nodes[node, FIRST_TOKEN] = token
        tree.nodes[node, FIRST_NODE] = target
        tree.nodes[node, FIRST_COUNT] = 1
        return
    if tree.nodes[node, HEAD] == NONE:
        first = tree.nodes[node, FIRST_NODE]
        _append_edge(tree, node, tree.nodes[node, FIRST_TOKEN], first, 0)
    _append_edge(tree, node, token, target, 1)


@inlined
def _append_edge(tree: TreeArrays, node: int, token: int, target: int, count: int) -> None:
    edge = tree.state[FREE_EDGE]
    if edge != NONE:
        tree.state[FREE_EDGE] = tree.edges[edge, CHAIN]
    else:
        edge = tree.state[EDGES]
        tree.state[EDGES] = edge + 1
    slot = slot_of(tree, node, token)
    tail = tree.nodes[node, TAIL]
    tree.edges[edge, OWNER] = node
    tree.edges[edge, TOKEN] = token
    tree.edges[edge, NODE] = target
    tree.edges[edge, EDGE_COUNT] = count
    tree.edges[edge, PREVIOUS] = tail
    tree.edges[edge, NEXT] = NONE
    tree.edges[edge, CHAIN] = tree.slots[slot]
    tree.slots[slot] = edge
    tree.nodes[node, TAIL] = edge
    if tail == NONE:
        tree.nodes[node, HEAD] = edge
        tree.edges[edge, LEADER] = edge
    else:
        tree.edges[tail, NEXT] = edge
        tree.edges[edge, LEADER] = tree.edges[tail, LEADER]


@lean_kernel
def copy_children(tree: TreeArrays, source: int, node: int) -> None:
    """Give a childless node the children of another, in their order."""
    tree.nodes[node, FIRST_TOKEN] = tree.nodes[source, FIRST_TOKEN]
    tree.nodes[node, FIRST_NODE] = tree.nodes[source, FIRST_NODE]
    tree.nodes[node, FIRST_COUNT] = tree.nodes[source, FIRST_COUNT]
    edge = tree.nodes[source, HEAD]
    while edge != NONE:
        count = tree.edges[edge, EDGE_COUNT]
        _append_edge(tree, node, tree.edges[edge, TOKEN], tree.edges[edge, NODE], count)
        edge = tree.edges[edge, NEXT]


@inlined
def raise_child(tree: TreeArrays, node: int, child: int) -> None:
    """Count a child once more and move it to its place."""
    if child == FIRST:
        tree.nodes[node, FIRST_COUNT] += 1
        return
    group, count = tree.edges[child, PREVIOUS], tree.edges[child, EDGE_COUNT] + 1
    higher = _count_of(tree, node, group)
    other = _leader(tree, node, group, higher) if higher <= count else NONE
    tree.edges[child, EDGE_COUNT] = count
    if other != NONE:
        _move_before(tree, node, child, other)


@inlined
def _count_of(tree: TreeArrays, node: int, edge: int) -> int:
    return int(
        tree.nodes[node, FIRST_COUNT] if edge == tree.nodes[node, HEAD] else tree.edges[edge, EDGE_COUNT]
    )


@inlined
def _leader(tree: TreeArrays, node: int, edge: int, count: int) -> int:
    """The first edge with the count that this edge has; those on the way to it are led to it from now on."""
    at, hint = edge, tree.edges[edge, LEADER]
    if tree.edges[hint, OWNER] == node and _count_of(tree, node, hint) == count:
        at = hint
    while at != tree.nodes[node, HEAD] and _count_of(tree, node, tree.edges[at, PREVIOUS]) == count:
        at = tree.edges[at, PREVIOUS]
    while edge != at and tree.edges[edge, LEADER] != at:
        tree.edges[edge, LEADER] = at
        edge = tree.edges[edge, PREVIOUS]
    return at


@inlined
def _move_before(tree: TreeArrays, node: int, edge: int, other: int) -> None:
    """Move an edge forwards in the list."""
    _unlink(tree, node, edge)
    previous = tree.edges[other, PREVIOUS]
    tree.edges[edge, PREVIOUS] = previous
    tree.edges[edge, NEXT] = other
    tree.edges[other, PREVIOUS] = edge
    if previous != NONE:
        tree.edges[previous, NEXT] = edge
        tree.edges[edge, LEADER] = tree.edges[previous, LEADER]
        return
    tree.edges[other, EDGE_COUNT] = tree.nodes[node, FIRST_COUNT]
    _make_head(tree, node, edge)


@inlined
def _make_head(tree: TreeArrays, node: int, edge: int) -> None:
    tree.nodes[node, HEAD] = edge
    tree.nodes[node, FIRST_TOKEN] = tree.edges[edge, TOKEN]
    tree.nodes[node, FIRST_NODE] = tree.edges[edge, NODE]
    tree.nodes[node, FIRST_COUNT] = tree.edges[edge, EDGE_COUNT]
    tree.edges[edge, LEADER] = edge


@inlined
def _unlink(tree: TreeArrays, node: int, edge: int) -> None:
    """Take an edge out of the list; HEAD is the caller's business."""
    previous, following = tree.edges[edge, PREVIOUS], tree.edges[edge, NEXT]
    if previous != NONE:
        tree.edges[previous, NEXT] = following
    if following != NONE:
        tree.edges[following, PREVIOUS] = previous
    else:
        tree.nodes[node, TAIL] = previous


@lean_kernel
def lower_child(tree: TreeArrays, node: int, token: int) -> None:
    """Count a child once less and move it to its place, or drop it at 0."""
    child = find_child(tree, node, token)
    edge = tree.nodes[node, HEAD] if child == FIRST else child
    count = tree.nodes[node, FIRST_COUNT] if child == FIRST else tree.edges[edge, EDGE_COUNT]
    if count == 1:
        drop_child(tree, node, token)
        return
    if child == FIRST:
        tree.nodes[node, FIRST_COUNT] = count - 1
    if edge == NONE:
        return
    tree.edges[edge, EDGE_COUNT] = count - 1
    following = tree.edges[edge, NEXT]
    while following != NONE and tree.edges[following, EDGE_COUNT] == count:
        following = tree.edges[following, NEXT]
    if following != tree.edges[edge, NEXT]:
        _move_behind(tree, node, edge, following)


@lean_kernel
def _move_behind(tree: TreeArrays, node: int, edge: int, other: int) -> None:
    """Move an edge backwards in the list, to before `other`, or to the end if that is NONE."""
    if edge == tree.nodes[node, HEAD]:
        _make_head(tree, node, tree.edges[edge, NEXT])
    _unlink(tree, node, edge)
    previous = tree.nodes[node, TAIL] if other == NONE else tree.edges[other, PREVIOUS]
    tree.edges[edge, PREVIOUS] = previous
    tree.edges[edge, NEXT] = other
    tree.edges[previous, NEXT] = edge
    if other == NONE:
        tree.nodes[node, TAIL] = edge
    else:
        tree.edges[other, PREVIOUS] = edge


@lean_kernel
def drop_child(tree: TreeArrays, node: int, token: int) -> None:
    """Remove a child that a node has; with one child left, its edge goes too."""
    child = find_child(tree, node, token)
    edge = tree.nodes[node, HEAD] if child == FIRST else child
    if edge == NONE:
        tree.nodes[node, FIRST_TOKEN] = -1
        return
    if child == FIRST:
        _make_head(tree, node, tree.edges[edge, NEXT])
    _unlink(tree, node, edge)
    _free_edge(tree, edge)
    if tree.nodes[node, HEAD] == tree.nodes[node, TAIL]:
        drop_list(tree, node)


@lean_kernel
def drop_list(tree: TreeArrays, node: int) -> None:
    """Free a node's edges; its first child stays."""
    edge = tree.nodes[node, HEAD]
    while edge != NONE:
        following = tree.edges[edge, NEXT]
        _free_edge(tree, edge)
        edge = following
    tree.nodes[node, HEAD] = tree.nodes[node, TAIL] = NONE


@lean_kernel
def _free_edge(tree: TreeArrays, edge: int) -> None:
    slot = slot_of(tree, tree.edges[edge, OWNER], tree.edges[edge, TOKEN])
    before, at = NONE, tree.slots[slot]
    while at != edge:
        before, at = at, tree.edges[at, CHAIN]
    if before == NONE:
        tree.slots[slot] = tree.edges[edge, CHAIN]
    else:
        tree.edges[before, CHAIN] = tree.edges[edge, CHAIN]
    tree.edges[edge, OWNER] = -1
    tree.edges[edge, CHAIN] = tree.state[FREE_EDGE]
    tree.state[FREE_EDGE] = edge
