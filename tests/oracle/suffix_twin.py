"""Arctic Inference's suffix decoding as plainly as it can be said: every sequence of up to max_depth tokens is a node."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Node:
    count: int = 0
    children: dict[int, Node] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    """The children's tokens by falling count, those that rose first before those that rose later … or not."""

    def add(self, token: int) -> Node:
        child = self.children.get(token)
        if child is None:
            child = self.children[token] = Node()
            child.count = 1
            self.order.append(token)
            return child
        at = self.order.index(token)
        before = self.children[self.order[at - 1]].count if at else None
        child.count += 1
        if before is not None and before <= child.count:
            self.order.pop(at)
            counts = [self.children[t].count for t in self.order]
            self.order.insert(counts.index(before), token)
        return child

    def subtract(self, token: int) -> Node:
        child = self.children[token]
        at = self.order.index(token)
        old = child.count
        child.count -= 1
        if child.count == 0:
            self.order.pop(at)
            del self.children[token]
        else:
            self.order.pop(at)
            same = sum(1 for t in self.order[at:] if self.children[t].count == old)
            self.order.insert(at + same, token)
        return child


class Tree:
    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.root = Node()

    def append(self, text: list[int], token: int) -> None:
        """Count the sequences that end in a token that comes after the text."""
        whole = [*text, token]
        for length in range(1, min(self.max_depth, len(whole)) + 1):
            node = self.find(whole[len(whole) - length : -1])
            assert node is not None
            node.add(token)

    def remove(self, text: list[int]) -> None:
        for start in range(len(text)):
            node = self.root
            for token in text[start : start + self.max_depth]:
                node = node.subtract(token)

    def find(self, sequence: list[int]) -> Node | None:
        node: Node | None = self.root
        for token in sequence:
            node = node.children.get(token) if node else None
        return node

    def speculate(
        self, context: list[int], most: int, factor: float, min_prob: float
    ) -> tuple[float, list[int]]:
        best: tuple[float, list[int]] = (0.0, [])
        for length in range(1, len(context)):
            node = self.find(context[len(context) - length :])
            if node is None:
                break
            allowed = int(float(np.float32(length) * np.float32(factor)) + 1e-6)
            draft = _path(node, max(0, min(most, allowed)), np.float32(min_prob))
            if draft[0] >= best[0]:
                best = draft
        return best


def _path(node: Node, most: int, min_prob: np.float32) -> tuple[float, list[int]]:
    tokens: list[int] = []
    score, prob = np.float32(0), np.float32(1)
    while len(tokens) < most and node.order:
        child = node.children[node.order[0]]
        prob = prob * (np.float32(child.count) / np.float32(node.count))
        if prob < min_prob:
            break
        tokens.append(node.order[0])
        score = score + prob
        node = child
    return float(score), tokens


class SuffixTwin:
    """Requests one after another."""

    def __init__(
        self, k: int, max_tree_depth: int, max_cached_requests: int, factor: float, min_prob: float
    ) -> None:
        self.k, self.depth, self.most_cached = k, max_tree_depth, max_cached_requests
        self.factor, self.min_prob = factor, min_prob
        self.cached = Tree(max_tree_depth)
        self.outputs: deque[list[int]] = deque()

    def request(
        self, prompt: list[int], output: list[int], max_model_len: int = 2**31 - 1
    ) -> list[list[int]]:
        """The draft before each output token."""
        own, text, drafts = Tree(self.depth), [], []
        for token in prompt:
            own.append(text, token)
            text.append(token)
        if self.most_cached and len(self.outputs) == self.most_cached:
            self.cached.remove(self.outputs.popleft())
        for i, token in enumerate(output):
            drafts.append(self._draft(own, text, max_model_len))
            own.append(text, token)
            if self.most_cached:
                self.cached.append(output[:i], token)
            text.append(token)
        self.outputs.append(output)
        return drafts

    def _draft(self, own: Tree, text: list[int], max_model_len: int) -> list[int]:
        most = max(0, min(self.k, max_model_len - len(text) - 1))
        context = text[-self.depth :]
        local = own.speculate(context, most, self.factor, self.min_prob)
        other = self.cached.speculate(context, most, self.factor, self.min_prob)
        return local[1] if local[0] >= other[0] else other[1]
