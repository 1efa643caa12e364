"""Drafts from suffix trees: compiled loops that look up the best path and step through a recorded request."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters._suffix_arrays import (
    ACTIVE,
    ACTIVE_DEPTH,
    COUNT,
    DEPTH,
    FED,
    FIRST_COUNT,
    FIRST_NODE,
    FIRST_TOKEN,
    LINK,
    MATCH,
    MATCH_DEPTH,
    MAX_DEPTH,
    ROOT,
    TreeArrays,
)
from breakeven.drafters._suffix_nodes import append, look_up, suffix_node
from breakeven.drafters.compiler import inlined, lean_kernel

Ids = NDArray[np.int32]

ROUNDING = 1.001
"""More than a sum of some thousand single precision numbers gains by rounding."""

DONE, OWN_FULL, CACHED_FULL = range(3)
"""What replay_request returns: all ids are fed, or a tree's arrays are too small."""


@lean_kernel
def look_up_all(tree: TreeArrays, tokens: Ids) -> None:
    """The context goes on by tokens that are not appended to the tree."""
    for token in tokens:
        look_up(tree, token)


@lean_kernel
def feed(tree: TreeArrays, text: Ids) -> bool:
    """Append what the text has more than the tokens fed already. False if the arrays are too small."""
    for at in range(tree.state[FED], len(text)):
        if not append(tree, text[at]):
            return False
        tree.state[FED] = at + 1
        if tree.state[ACTIVE_DEPTH] < tree.state[MAX_DEPTH]:
            look_up(tree, text[at])
        else:
            tree.state[MATCH], tree.state[MATCH_DEPTH] = tree.state[ACTIVE], tree.state[ACTIVE_DEPTH]
    return True


@lean_kernel
def propose(
    own: TreeArrays,
    cached: TreeArrays,
    context_tokens: int,
    limits: Ids,
    room: int,
    min_prob: np.float32,
    draft: Ids,
) -> int:
    """Write the better of two trees' drafts and return its length. The own wins a tie.

    limits[m] is the most tokens to draft after a match of m tokens, limits[0] the m that allows most; room
    is the most tokens after any.
    """
    longest = min(context_tokens, own.state[MAX_DEPTH]) - 1
    depth = min(longest, own.state[MATCH_DEPTH])
    node = suffix_node(own, own.state[MATCH], depth)
    best, own_node, own_tokens = best_draft(own, node, depth, limits, room, min_prob, np.float32(0))
    depth = min(longest, cached.state[MATCH_DEPTH])
    node = suffix_node(cached, cached.state[MATCH], depth)
    best, node, tokens = best_draft(cached, node, depth, limits, room, min_prob, best)
    if node != ROOT:
        return write_draft(cached, node, tokens, min_prob, draft)
    return write_draft(own, own_node, own_tokens, min_prob, draft)


@inlined
def best_draft(
    tree: TreeArrays, node: int, depth: int, limits: Ids, room: int, min_prob: np.float32, best: np.float32
) -> tuple[np.float32, int, int]:
    """The match whose draft scores most, and more than `best`: its score, its node, the most tokens to draft.

    The matches are 1 to `depth` tokens long; `node` is the longest's. The node is ROOT if none scores more.
    A node's sequences share one path, so the length that allows most tokens decides (limits rises up to the
    length limits[0] and falls from there): a further token raises the score, unless it is one in a million.
    """
    found, tokens = ROOT, 0
    while node != ROOT:
        shortest = tree.nodes[tree.nodes[node, LINK], DEPTH] + 1
        limit = min(room, limits[min(max(limits[0], shortest), depth)])
        if limit > best:
            score = _score(tree, node, limit, min_prob, best)
            if score > best:
                best, found, tokens = score, node, limit
        depth = shortest - 1
        node = tree.nodes[node, LINK]
    return best, found, tokens


@inlined
def _score(tree: TreeArrays, node: int, limit: int, min_prob: np.float32, best: np.float32) -> np.float32:
    """Sum of the path's probabilities, in single precision as Arctic; a part of it if below `best`."""
    score, prob = np.float32(0), np.float32(1)
    for length in range(limit):
        if tree.nodes[node, FIRST_TOKEN] < 0:
            break
        prob = prob * (np.float32(tree.nodes[node, FIRST_COUNT]) / np.float32(tree.nodes[node, COUNT]))
        if prob < min_prob or score + (limit - length) * prob * ROUNDING < best:
            break
        score = score + prob
        node = tree.nodes[node, FIRST_NODE]
    return score


@inlined
def write_draft(tree: TreeArrays, node: int, limit: int, min_prob: np.float32, draft: Ids) -> int:
    """Write the draft of best_draft; returns its length."""
    prob = np.float32(1)
    for length in range(limit):
        if tree.nodes[node, FIRST_TOKEN] < 0:
            return length
        prob = prob * (np.float32(tree.nodes[node, FIRST_COUNT]) / np.float32(tree.nodes[node, COUNT]))
        if prob < min_prob:
            return length
        draft[length] = tree.nodes[node, FIRST_TOKEN]
        node = tree.nodes[node, FIRST_NODE]
    return limit


@lean_kernel
def replay_request(
    own: TreeArrays,
    cached: TreeArrays,
    caching: bool,
    ids: Ids,
    prompt: int,
    rooms: Ids,
    cursor: NDArray[np.int64],
    every: bool,
    limits: Ids,
    min_prob: np.float32,
    draft: Ids,
    drafted: Ids,
    accepted: Ids,
) -> int:
    """Step through a request's ids; rooms, drafted and accepted are those of its output positions.

    cursor[0] is where the next token is fed, cursor[1] where the next draft is made: before every token, or
    where a step ends. After OWN_FULL or CACHED_FULL, grow that tree and call again.
    """
    for at in range(cursor[0], len(ids)):
        cursor[0] = at
        if at == cursor[1]:
            n = propose(own, cached, at, limits, rooms[at - prompt], min_prob, draft)
            right = 0
            while right < n and at + right < len(ids) and ids[at + right] == draft[right]:
                right += 1
            drafted[at - prompt], accepted[at - prompt] = n, right
            cursor[1] = at + 1 if every else at + 1 + right
        if not feed(own, ids[: at + 1]):
            return OWN_FULL
        if caching and not feed(cached, ids[prompt : at + 1]):
            return CACHED_FULL
    return DONE
