"""Arctic Inference's suffix decoding as plainly as it can be said: each sequence that occurred is a node."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from breakeven.drafters.vllm_suffix import VllmSuffixSettings


@dataclass
class Node:
    """A sequence of tokens, with those that followed it."""

    count: int = 0
    children: dict[int, Node] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    """Tokens of the children, by falling count; among equals, as moves have left them."""

    def counts(self) -> list[int]:
        return [self.children[token].count for token in self.order]

    def raise_count(self, token: int) -> None:
        """One up; if the sibling before has no higher count than that, move before the first of its count."""
        if token not in self.children:
            self.children[token] = Node(1)
            self.order.append(token)
            return
        at = self.order.index(token)
        self.children[token].count += 1
        if at and self.counts()[at - 1] <= self.counts()[at]:
            first = self.counts().index(self.counts()[at - 1])
            self.order.insert(first, self.order.pop(at))

    def lower_count(self, token: int) -> None:
        """One down, and behind the siblings that had the same count; gone at 0."""
        at, old = self.order.index(token), self.children[token].count
        same = self.counts()[at + 1 :].count(old)
        self.order.pop(at)
        self.children[token].count -= 1
        if old > 1:
            self.order.insert(at + same, token)


class Tree:
    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.root = Node()

    def append(self, text: list[int], token: int) -> None:
        """The text so far goes on by a token."""
        for length in range(min(self.max_depth, len(text) + 1)):
            node = self.find(text[len(text) - length :])
            assert node is not None
            node.raise_count(token)

    def remove(self, text: list[int]) -> None:
        for start in range(len(text)):
            node = self.root
            for token in text[start : start + self.max_depth]:
                node.lower_count(token)
                node = node.children[token]
        _prune(self.root)

    def find(self, sequence: list[int]) -> Node | None:
        node: Node | None = self.root
        for token in sequence:
            node = node.children.get(token) if node else None
        return node

    def speculate(
        self, context: list[int], most: int, settings: VllmSuffixSettings
    ) -> tuple[float, list[int]]:
        """The score and tokens of the best path after the last 1, 2, … tokens of the context; late ones win
        ties."""
        best: tuple[float, list[int]] = (0.0, [])
        for length in range(1, len(context)):
            node = self.find(context[len(context) - length :])
            if node is None:
                break
            allowed = int(float(np.float32(length) * np.float32(settings.max_spec_factor)) + 1e-6)
            draft = _path(node, min(most, allowed), np.float32(settings.min_token_prob))
            if draft[0] >= best[0]:
                best = draft
        return best


def _prune(node: Node) -> None:
    node.children = {token: child for token, child in node.children.items() if child.count}
    for child in node.children.values():
        _prune(child)


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
    """Drafts for requests one after another."""

    def __init__(self, settings: VllmSuffixSettings) -> None:
        self.settings = settings
        self.cached = Tree(settings.max_tree_depth)
        self.outputs: deque[list[int]] = deque()

    def request(
        self, prompt: list[int], output: list[int], max_model_len: int = 2**31 - 1
    ) -> list[list[int]]:
        """The draft before each output token."""
        own, text, drafts = Tree(self.settings.max_tree_depth), list[int](), []
        for token in prompt:
            own.append(text, token)
            text.append(token)
        caching = self.settings.max_cached_requests > 0
        if caching and len(self.outputs) == self.settings.max_cached_requests:
            self.cached.remove(self.outputs.popleft())
        for i, token in enumerate(output):
            drafts.append(self._draft(own, text, max_model_len))
            own.append(text, token)
            if caching:
                self.cached.append(output[:i], token)
            text.append(token)
        self.outputs.append(output)
        return drafts

    def _draft(self, own: Tree, text: list[int], max_model_len: int) -> list[int]:
        k = self.settings.k
        most = 0 if len(text) - 1 + k > max_model_len else min(k, max(0, max_model_len - len(text) - 1))
        context = text[-self.settings.max_tree_depth :]
        mine = own.speculate(context, most, self.settings)
        others = self.cached.speculate(context, most, self.settings)
        return mine[1] if mine[0] >= others[0] else others[1]
