"""The arrays of a suffix tree, as the compiled loops take them, and what their columns mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = 0
NONE = 0
"""No edge; row 0 of `edges` is not used."""

DEPTH, LINK, COUNT, FIRST_TOKEN, FIRST_NODE, FIRST_COUNT, HEAD, TAIL = range(8)
"""Columns of `nodes`: tokens of the node's longest sequence, the node of the next shorter suffix,
occurrences; the first child (token -1 if there is none), and the list of all children, which only two or
more have."""

OWNER, TOKEN, NODE, EDGE_COUNT, PREVIOUS, NEXT, LEADER, CHAIN = range(8)
"""Columns of `edges`, a row for each child in a list: the parent (-1 in a free row), the token, the node and
its count (of the HEAD, FIRST_COUNT has it instead); the neighbours in the list; the first edge with the same
count, or one that was that once; the next edge in the same slot, or the next free row."""

MAX_DEPTH, NODES, FREE_NODE, EDGES, FREE_EDGE, FED, ACTIVE, ACTIVE_DEPTH, MATCH, MATCH_DEPTH = range(10)
"""Entries of `state`: rows in use, and the first free one among them (-1 or NONE if none is); of the text
that grows, the tokens fed and its longest suffix (node, length); the longest suffix of the context looked
up."""


class TreeArrays(NamedTuple):
    """A suffix tree."""

    nodes: NDArray[np.int32]
    """Shape (rows, 8)."""
    edges: NDArray[np.int32]
    """Shape (rows, 8)."""
    slots: NDArray[np.int32]
    """The first edge of each slot of a hash of (parent, token); the length is a power of two."""
    state: NDArray[np.int32]
    """Shape (10,)."""
