"""The size of a head: what is trained, what an optimizer step computes, what its activations take."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.cost.attention import Attention, GroupedQuery
from breakeven.cost.geometry import Geometry
from breakeven.eagle.layers import AUX
from breakeven.errors import UsageError
from breakeven.interval import Interval

_GATED = 3
"""Matrices of a gated feed-forward block: gate, up and down."""
_FORWARD_AND_BACKWARD = 6
"""Operations for each weight and token: 2 forward, 4 backward."""
_PER_HIDDEN, _PER_FF, _BYTES = 16, 3, 2
"""Activations kept for the backward pass, for each token and step: BF16 numbers of the width of the hidden
states and of the feed-forward block, …"""
_LOGIT_BYTES = Interval(6, 4, 8)
"""… and bytes for each entry of the draft vocabulary: logits and their gradient, in BF16 or float32. Both
chosen so that seven peaks that SpecForge measured on an H200 lie within the interval, or at most 5 % outside
(tests/unit/eagle/plan/test_memory.py)."""
TARGET_LOGIT_BYTES = 4
"""For each entry of the target's vocabulary, once a token, where a trainer keeps those logits whole."""


@dataclass(frozen=True, slots=True)
class HeadSize:
    """One Llama layer whose attention reads twice the width, a projection of the states, an output head."""

    hidden: int
    ff: int
    heads: int
    kv_heads: int
    head_dim: int
    draft_vocabulary: int
    target_vocabulary: int

    def fused(self) -> int:
        """Parameters of the projection of three layers' states, which a token passes once."""
        return AUX * self.hidden**2

    def stepped(self) -> int:
        """Parameters that a token passes at every step of the training-time test. Norms are not counted."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * self.hidden * (queries + 2 * keys) + queries * self.hidden
        return attention + _GATED * self.hidden * self.ff + self.draft_vocabulary * self.hidden

    def trained(self) -> int:
        """Parameters that training changes."""
        return self.fused() + self.stepped()

    def frozen(self) -> int:
        """Parameters of the target that training reads: its embedding table, and those rows of its output
        head that are of the draft vocabulary. They are two tables, even where the target has one for both."""
        return (self.target_vocabulary + self.draft_vocabulary) * self.hidden

    def flops_per_token(self, steps: int) -> float:
        """Of one token in one epoch, forward and backward: 6 · (fc + steps · the rest). Attention over other
        tokens is not counted."""
        return _FORWARD_AND_BACKWARD * float(self.fused() + steps * self.stepped())

    def activation_bytes_per_token(self, steps: int) -> Interval:
        """Kept for the backward pass, without recomputation; the high end with the target's logits whole."""
        layer = _BYTES * (_PER_HIDDEN * self.hidden + _PER_FF * self.ff)
        estimate, low, high = (
            steps * (layer + each * self.draft_vocabulary)
            for each in (_LOGIT_BYTES.estimate, _LOGIT_BYTES.low, _LOGIT_BYTES.high)
        )
        return Interval(estimate, low, high + TARGET_LOGIT_BYTES * self.target_vocabulary)


def head_of(geometry: Geometry, draft_vocabulary: int) -> HeadSize:
    """As published heads of such a target are: its width, its attention heads, its dense layer.

    Of latent attention the head has as many full heads, as AQ-MedAI/Kimi-K25-eagle3 does. Of a target without
    dense layers the feed-forward block is as wide as the experts that a token uses. Raises UsageError for a
    draft vocabulary larger than the target's.
    """
    if draft_vocabulary > geometry.vocab:
        raise UsageError(
            f"a draft vocabulary of {draft_vocabulary:,}: the target has {geometry.vocab:,} tokens; type "
            f"--draft-vocabulary {min(32_000, geometry.vocab)}, or 0 for all of them"
        )
    kv_heads, head_dim = _of_attention(geometry.attention)
    return HeadSize(
        hidden=geometry.hidden,
        ff=geometry.dense_ff or _active_width(geometry),
        heads=geometry.attention.heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        draft_vocabulary=draft_vocabulary or geometry.vocab,
        target_vocabulary=geometry.vocab,
    )


def _of_attention(attention: Attention) -> tuple[int, int]:
    """KV heads, and the width of a head."""
    if isinstance(attention, GroupedQuery):
        return attention.kv_heads, attention.head_dim
    return attention.heads, attention.v_dim


def _active_width(geometry: Geometry) -> int:
    experts = geometry.experts
    return 0 if experts is None else experts.top_k * experts.ff + experts.shared * experts.shared_ff
