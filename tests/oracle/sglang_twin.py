"""A second reading of SGLang's NGRAM: the trie as a dictionary of paths, every order found by sorting.

A path is the tuple of tokens that leads to a node. `last` is when its node was used last: an insertion uses
the nodes of a path from the deepest to the first, so that a parent is always more recent than its children.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from breakeven.drafters.sglang_ngram import SglangNgramSettings

Path = tuple[int, ...]


@dataclass
class Node:
    uses: int
    last: int
    born: int


class SglangTwin:
    def __init__(self, settings: SglangNgramSettings) -> None:
        self.settings = settings
        self.nodes: dict[Path, Node] = {}
        """The one used longest ago comes first."""
        self.children: dict[Path, set[Path]] = {(): set()}
        self.clock = 0
        self.begin()

    def begin(self) -> None:
        self.found: list[int | None] = []
        self.length = 0

    def step(self, context: list[int]) -> list[Path]:
        """The drafted nodes' paths from the context's end, padding included, sorted."""
        self.follow(context)
        depth = self.settings.max_trie_depth
        anchors = [
            tuple(context[-n:]) for n in range(len(self.found), 0, -1) if self.found[n - 1] is not None
        ]
        drafted = self.recent(anchors) if self.settings.match_type == "BFS" else self.frequent(anchors)
        self.insert(context[-depth:])
        padding = [(0,)] * (self.settings.k - len(drafted))
        return sorted(drafted + padding)

    def insert(self, window: list[int]) -> None:
        depth, capacity = self.settings.max_trie_depth, self.settings.capacity
        for start in range(len(window)):
            suffix = tuple(window[start : start + depth])
            while len(self.nodes) + 1 + len(suffix) > capacity:
                self.forget(next(iter(self.nodes)))
            for end in range(len(suffix), 0, -1):
                path = suffix[:end]
                self.clock += 1
                node = self.nodes[path] = self.nodes.pop(path, None) or Node(0, 0, self.clock)
                node.uses += 1
                node.last = self.clock
                self.children.setdefault(path, set())
                self.children.setdefault(path[:-1], set()).add(path)

    def forget(self, path: Path) -> None:
        assert not self.children[path], "a node with children was used longer ago than they"
        del self.nodes[path], self.children[path]
        self.children[path[:-1]].remove(path)

    def follow(self, context: list[int]) -> None:
        """found[n − 1] says when the node of the last n tokens was born, None if it was not there."""
        depth = self.settings.max_trie_depth
        new = len(context) - self.length
        before = context[: self.length]
        stale = any(
            born is not None and (suffix not in self.nodes or self.nodes[suffix].born != born)
            for suffix, born in (
                (tuple(before[-n:]), self.found[n - 1]) for n in range(1, len(self.found) + 1)
            )
        )
        if stale or new > min(depth, len(context)):
            self.found, new = [], min(depth, len(context))
        for end in range(len(context) - new + 1, len(context) + 1):
            reached = [True, *(born is not None for born in self.found)][:depth]
            suffixes = [tuple(context[end - n : end]) for n in range(1, len(reached) + 1)]
            self.found = [
                self.nodes[suffix].born if there and suffix in self.nodes else None
                for there, suffix in zip(reached, suffixes, strict=True)
            ]
        self.length = len(context)

    def recent(self, anchors: list[Path]) -> list[Path]:
        settings = self.settings
        budget, most = settings.k, max(1, settings.max_trie_depth - 1)
        shrink = (settings.max_bfs_breadth - settings.min_bfs_breadth) / most
        drafted: list[Path] = []
        for anchor in anchors:
            queue = deque([(anchor, (most - len(anchor)) * shrink + settings.min_bfs_breadth)])
            while queue and len(drafted) < budget:
                path, breadth = queue.popleft()
                newest = sorted(self.children[path], key=lambda child: -self.nodes[child].last)
                for child in newest[: max(1, int(breadth))]:
                    if len(drafted) == budget:
                        break
                    if child[len(anchor) :] not in drafted:
                        drafted.append(child[len(anchor) :])
                    queue.append((child, breadth - shrink))
        return drafted

    def frequent(self, anchors: list[Path]) -> list[Path]:
        budget = self.settings.k
        drafted: list[Path] = []
        for anchor in anchors:
            heap: list[tuple[float, Path]] = []
            self.push_children(heap, anchor, 1.0)
            while heap and len(drafted) < budget:
                chance, path = pop(heap)
                if path[len(anchor) :] not in drafted:
                    drafted.append(path[len(anchor) :])
                self.push_children(heap, path, chance)
        return drafted

    def push_children(self, heap: list[tuple[float, Path]], parent: Path, chance: float) -> None:
        ranked = sorted(self.children[parent], key=lambda child: (-self.nodes[child].uses, child[-1]))
        best = ranked[: self.settings.max_bfs_breadth]
        total = float(sum(self.nodes[child].uses for child in best))
        for child in best:
            heap.append((self.nodes[child].uses / total * chance, child))
            rise(heap, len(heap) - 1)


def rise(heap: list[tuple[float, Path]], i: int) -> None:
    while i and heap[(i - 1) // 2][0] < heap[i][0]:
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2


def pop(heap: list[tuple[float, Path]]) -> tuple[float, Path]:
    """As libstdc++'s std::pop_heap: the top's place moves down to a leaf, the last one rises from there."""
    top, last = heap[0], heap.pop()
    if not heap:
        return top
    hole = 0
    while 2 * hole + 1 < len(heap):
        left, right = 2 * hole + 1, 2 * hole + 2
        larger = right if right < len(heap) and heap[right][0] >= heap[left][0] else left
        heap[hole], hole = heap[larger], larger
    heap[hole] = last
    rise(heap, hole)
    return top
