"""The training-time test of EAGLE-3 in naive loops: one position, one step, one key at a time.

A chain begins at every position of the shifted sample. At step j its position has seen the target's states
up to where the chain began, and what the chain itself made at its steps 1 … j; it is fed the token that came.
Written from the paper's description and the layer's formulas, float64 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FEW = 1e-5
"""Added to the number of tokens before it divides."""


@dataclass(frozen=True)
class Shape:
    """Of the one layer, and what is normed."""

    heads: int
    key_value_heads: int
    head_size: int
    epsilon: float
    theta: float
    fc_norm: bool
    norm_output: bool


@dataclass(frozen=True)
class Found:
    """What the loops find."""

    loss: Tensor
    by_step: list[Tensor]
    """Without the decay."""
    drafts: list[list[int]]
    """Most probable draft id, for each step and position."""


class Twin:
    """Weights by the names of the trainer library, of which those that require gradients get them."""

    def __init__(self, shape: Shape, weights: Mapping[str, Tensor]) -> None:
        self.shape, self.weights = shape, weights

    def run(self, document: Any, steps: int, decay: float, loss: str) -> Found:
        """Of a sample as shifted: input_ids, hidden, last, learned, each [1, T, …]."""
        ids, learned = document.input_ids[0].tolist(), document.learned[0].tolist()
        says = [self.target(state) for state in document.last[0].double()]
        first = [self.fused(state) for state in document.hidden[0].double()]
        logits: list[list[Tensor]] = [[] for _ in range(steps)]
        for start in range(len(ids)):
            for step, found in enumerate(self.chain(ids, first, start, steps)):
                logits[step].append(found)
        by_step = []
        for step in range(steps):
            terms = [
                self.term(logits[step][start], says[start + step], loss)
                for start in range(len(ids) - step)
                if learned[start + step]
            ]
            by_step.append(sum(terms, torch.zeros((), dtype=torch.float64)) / (len(terms) + FEW))
        total = sum((decay**step * one for step, one in enumerate(by_step)), torch.zeros(()))
        return Found(total, by_step, [[int(one.argmax()) for one in row] for row in logits])

    def chain(self, ids: Sequence[int], first: Sequence[Tensor], start: int, steps: int) -> list[Tensor]:
        """Logits at each step of the chain that begins at `start`."""
        seen = [self.key_value(ids[before], first[before], before + 1) for before in range(start + 1)]
        state, found = first[start], []
        for step in range(steps):
            token = ids[start + step] if start + step < len(ids) else 0
            place = start + 1 + step
            if step:
                seen.append(self.key_value(token, state, place))
            hidden = state + self.attended(self.query(token, state, place), seen)
            hidden = hidden + self.feed_forward(self.norm(hidden, "layers.0.post_attention_layernorm"))
            last = self.norm(hidden, "norm")
            found.append(self.weights["lm_head.weight"] @ last)
            state = last if self.shape.norm_output else hidden
        return found

    def fused(self, states: Tensor) -> Tensor:
        parts = list(states.chunk(3))
        if self.shape.fc_norm:
            parts = [self.norm(part, f"fc_norm.{number}") for number, part in enumerate(parts)]
        return self.weights["fc.weight"] @ torch.cat(parts)

    def both(self, token: int, state: Tensor) -> Tensor:
        embedded = self.norm(self.weights["embed_tokens.weight"][token], "layers.0.input_layernorm")
        return torch.cat([embedded, self.norm(state, "layers.0.hidden_norm")])

    def query(self, token: int, state: Tensor, place: int) -> list[Tensor]:
        return self.projected("q", token, state, place)

    def key_value(self, token: int, state: Tensor, place: int) -> tuple[list[Tensor], list[Tensor]]:
        return self.projected("k", token, state, place), self.projected("v", token, state, None)

    def projected(self, name: str, token: int, state: Tensor, place: int | None) -> list[Tensor]:
        """For each head, rotated to its place."""
        flat = self.weights[f"layers.0.self_attn.{name}_proj.weight"] @ self.both(token, state)
        heads = list(flat.split(self.shape.head_size))
        return heads if place is None else [self.rotated(head, place) for head in heads]

    def rotated(self, head: Tensor, place: int) -> Tensor:
        half = self.shape.head_size // 2
        turned = list(head)
        for pair in range(half):
            angle = place / self.shape.theta ** (2 * pair / self.shape.head_size)
            one, other = head[pair], head[pair + half]
            turned[pair] = one * math.cos(angle) - other * math.sin(angle)
            turned[pair + half] = other * math.cos(angle) + one * math.sin(angle)
        return torch.stack(turned)

    def attended(self, query: list[Tensor], seen: list[tuple[list[Tensor], list[Tensor]]]) -> Tensor:
        group = self.shape.heads // self.shape.key_value_heads
        found = []
        for number, one in enumerate(query):
            keys = [key[number // group] for key, _ in seen]
            values = [value[number // group] for _, value in seen]
            scores = torch.stack([one @ key for key in keys]) / math.sqrt(self.shape.head_size)
            weights = torch.softmax(scores, 0)
            found.append(sum((w * v for w, v in zip(weights, values, strict=True)), torch.zeros(())))
        return self.weights["layers.0.self_attn.o_proj.weight"] @ torch.cat(found)

    def feed_forward(self, state: Tensor) -> Tensor:
        gate, up, down = (self.weights[f"layers.0.mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        opened = gate @ state
        return down @ (opened * torch.sigmoid(opened) * (up @ state))

    def target(self, state: Tensor) -> Tensor:
        """The target's logits, of the draft vocabulary."""
        return self.weights["verifier_lm_head.weight"] @ self.norm(state, "verifier_norm")

    def term(self, logits: Tensor, says: Tensor, loss: str) -> Tensor:
        log_drafted = logits - torch.logsumexp(logits, 0)
        if loss == "ce":
            return -log_drafted[int(says.argmax())]
        log_target = says - torch.logsumexp(says, 0)
        return (log_target.exp() * (log_target - log_drafted)).sum()

    def norm(self, state: Tensor, name: str) -> Tensor:
        return (
            state / torch.sqrt((state * state).mean() + self.shape.epsilon) * self.weights[f"{name}.weight"]
        )
