"""An EAGLE-3 head, forward only: drafts from the target's hidden states, in torch alone.

Entry i of a sequence x₀ x₁ … is (token x_{i+1}, states g_i): what a server knows when the target has read x_i
and x_{i+1} has been chosen. Its logits guess x_{i+2}. From there a chain goes on with what the head itself
made: the state that it hands on, and the token that it drafted. Each entry attends to the entries of the
target's states up to where its chain began, and to its own chain: the KV cache of a server, from which drafts
are dropped once the target's states of what was accepted are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from breakeven.eagle.layers import AUX
from breakeven.eagle.shape import HeadShape

LAYER = "layers.0."
ATTENTION = LAYER + "self_attn."


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one sequence that the target has been through: a head's KV cache."""

    tokens: Tensor
    """Shape (n,)."""
    states: Tensor
    """What `fc` makes of the target's three, shape (n, hidden)."""
    keys: Tensor
    """Rotated; shape (n, KV heads, head size)."""
    values: Tensor

    def __len__(self) -> int:
        return len(self.tokens)


class Read(NamedTuple):
    """What attention needs of entries, each of shape (n, heads, head size)."""

    queries: Tensor
    keys: Tensor
    values: Tensor


class Head:
    """A head with its weights: float32 on one device, named as the trainer's library names them."""

    def __init__(self, shape: HeadShape, weights: Mapping[str, Tensor], draft_ids: Tensor) -> None:
        """`draft_ids` is the target's id of each of the head's own, (draft vocabulary,)."""
        self.shape = shape
        self.draft_ids = draft_ids
        self._weights = weights
        self._frequencies, self._scale = _rotary(shape, draft_ids.device)

    @property
    def device(self) -> torch.device:
        return self.draft_ids.device

    def entries(self, tokens: Tensor, aux: Tensor, after: Entries | None = None) -> Entries:
        """Those of tokens (n,) and the three states of the token before each, (n, 3, hidden); `after` earlier
        ones of the sequence, to which they are joined."""
        begin = len(after) if after else 0
        states = self._fused(aux)
        read = self._read(tokens, states, torch.arange(begin, begin + len(tokens), device=self.device))
        found = Entries(tokens, states, read.keys, read.values)
        return found if after is None else _joined(after, found)

    def chains(self, entries: Entries, at: Tensor, k: int, fed: Tensor | None = None) -> Iterator[Tensor]:
        """A chain of k drafts from each of the entries `at`, (n,): logits by place, (n, draft vocabulary).

        fed: the tokens that follow the first entry of each chain, shape (n, k − 1); the head's own drafts, of
        which each is the most probable token, if left out.
        """
        tokens, states, chain = entries.tokens[at], entries.states[at], list[Read]()
        for step in range(k):
            read = self._read(tokens, states, at + step)
            if step:
                chain.append(read)
            logits, states = self._left(states, _attend(read.queries, entries, at, chain))
            yield logits
            if step + 1 < k:
                tokens = self.drafted(logits) if fed is None else fed[:, step]

    def drafted(self, logits: Tensor) -> Tensor:
        """The target's ids of the most probable tokens, shape (n,)."""
        return self.draft_ids[logits.argmax(-1)]

    def _fused(self, aux: Tensor) -> Tensor:
        if self.shape.fc_norm:
            normed = [self._norm(aux[:, i], f"fc_norm.{i}") for i in range(AUX)]
            return self._linear(torch.cat(normed, -1), "fc")
        side_by_side = aux.flatten(1)
        if self.shape.norm_before_fc:
            side_by_side = self._norm(side_by_side, "input_norm")
        return self._linear(side_by_side, "fc")

    def _read(self, tokens: Tensor, states: Tensor, places: Tensor) -> Read:
        """Queries, keys and values of entries at these places of their sequence."""
        embedded = self._norm(self._weights["embed_tokens.weight"][tokens], LAYER + "input_layernorm")
        both = torch.cat([embedded, self._norm(states, LAYER + "hidden_norm")], -1)
        queries, keys, values = (self._heads(both, name) for name in "qkv")
        if self.shape.decoder == "qwen3":
            queries, keys = self._norm(queries, ATTENTION + "q_norm"), self._norm(keys, ATTENTION + "k_norm")
        angles = (places + 1)[:, None] * self._frequencies  # an entry stands where its token stands
        return Read(self._rotated(queries, angles), self._rotated(keys, angles), values)

    def _left(self, states: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the state that is handed on, from the states that went in and what attention found."""
        beside = self._norm(states, LAYER + "hidden_norm") if self.shape.norm_before_residual else states
        hidden = beside + self._linear(attended.flatten(1), ATTENTION + "o_proj")
        normed = self._norm(hidden, LAYER + "post_attention_layernorm")
        gated = silu(self._linear(normed, LAYER + "mlp.gate_proj")) * self._linear(
            normed, LAYER + "mlp.up_proj"
        )
        hidden = hidden + self._linear(gated, LAYER + "mlp.down_proj")
        last = self._norm(hidden, "norm")
        return self._linear(last, "lm_head"), last if self.shape.norm_output else hidden

    def _heads(self, both: Tensor, name: str) -> Tensor:
        """(n, 2 · hidden) → (n, heads, head size)."""
        return self._linear(both, f"{ATTENTION}{name}_proj").unflatten(-1, (-1, self.shape.head_dim))

    def _norm(self, states: Tensor, name: str) -> Tensor:
        return rms_norm(states, self._weights[f"{name}.weight"], self.shape.rms_norm_eps)

    def _linear(self, states: Tensor, name: str) -> Tensor:
        return linear(states, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

    def _rotated(self, vectors: Tensor, angles: Tensor) -> Tensor:
        """Rotary embedding of (n, heads, head size) by angles (n, head size / 2), half against half."""
        cos, sin = (angles.cos() * self._scale)[:, None], (angles.sin() * self._scale)[:, None]
        first, second = vectors.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def rms_norm(states: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / √(mean x² + eps) · weight, over the last dimension."""
    return states * torch.rsqrt(states.square().mean(-1, keepdim=True) + eps) * weight


def _attend(queries: Tensor, entries: Entries, at: Tensor, chain: Sequence[Read]) -> Tensor:
    """Of chains that began at the entries `at`: each sees those up to its own, and what it drafted since.

    queries: (n, heads, head size), as is what comes out.
    """
    seen = int(at.max()) + 1
    keys, values = entries.keys[:seen], entries.values[:seen]
    grouped = (
        queries.unflatten(1, (keys.shape[1], -1)) / queries.shape[-1] ** 0.5
    )  # (n, KV heads, group, size)
    scores = torch.einsum("nhgd,mhd->nhgm", grouped, keys)
    later = torch.arange(seen, device=at.device) > at[:, None]
    scores = scores.masked_fill(later[:, None, None], -torch.inf)
    own = [torch.einsum("nhgd,nhd->nhg", grouped, read.keys)[..., None] for read in chain]
    weights = torch.cat([scores, *own], -1).softmax(-1)
    found = torch.einsum("nhgm,mhd->nhgd", weights[..., :seen], values)
    for place, read in enumerate(chain, seen):
        found = found + weights[..., place, None] * read.values[:, :, None]
    return found.flatten(1, 2)


def _joined(earlier: Entries, later: Entries) -> Entries:
    return Entries(
        torch.cat([earlier.tokens, later.tokens]),
        torch.cat([earlier.states, later.states]),
        torch.cat([earlier.keys, later.keys]),
        torch.cat([earlier.values, later.values]),
    )


def _rotary(shape: HeadShape, device: torch.device) -> tuple[Tensor, float]:
    """Angle per position of each pair of dimensions, (head size / 2,), and the factor of both waves."""
    kind = shape.rope["rope_type"]
    if kind == "default":
        powers = torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim
        return shape.rope["rope_theta"] ** -powers, 1.0
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.max_positions,
        rope_parameters=dict(shape.rope),
    )
    frequencies, scale = ROPE_INIT_FUNCTIONS[kind](config, device)
    return frequencies, float(scale)
