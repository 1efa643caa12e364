"""The shape of a transformer, and what one decode step of it reads, computes and sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from breakeven.cost.attention import Attention
from breakeven.cost.checks import check_sizes
from breakeven.cost.precision import ALL_BF16, PARTS, Precision, Precisions
from breakeven.errors import UsageError

ACTIVATION_BYTES = 2
"""Of one number between layers: engines send BF16 or FP16 whatever the weights are."""
_MATRICES = 3
"""Of a gated feed-forward block (SwiGLU): gate, up and down."""
_NORMS_PER_LAYER = 2
_MOST_PARAMETERS = 10**15


@dataclass(frozen=True, slots=True)
class Experts:
    """The experts of one layer."""

    count: int
    """Routed experts, among which the router chooses."""
    top_k: int
    """Of them, those that each token uses."""
    ff: int
    """Inner width of one."""
    shared: int = 0
    """Experts that every token uses besides."""
    shared_ff: int = 0
    """Inner width of one of these."""

    def __post_init__(self) -> None:
        check_sizes(self, may_be_zero=("shared", "shared_ff"))
        if self.top_k > self.count:
            raise UsageError(f"impossible geometry: top_k {self.top_k} of {self.count} experts")
        if self.shared and not self.shared_ff:
            raise UsageError("impossible geometry: shared experts of width 0")


@dataclass(frozen=True, slots=True)
class Sliding:
    """Layers that attend to the last `window` tokens only."""

    layers: int
    window: int

    def __post_init__(self) -> None:
        check_sizes(self)


@dataclass(frozen=True)
class Geometry:
    """One decoder-only transformer with gated feed-forward blocks, checked: raises UsageError if impossible.

    Without slots, so that its sizes can be counted once: a forecast asks for them thousands of times.

    Biases, norms of queries and keys, and attention sinks are not counted: under 0.1 % of the weights.
    """

    architecture: str
    layers: int
    hidden: int
    vocab: int
    attention: Attention
    dense_layers: int
    """Layers whose feed-forward block has no experts."""
    dense_ff: int
    """Inner width of those blocks; unused where there are none."""
    experts: Experts | None = None
    tied: bool = False
    """Whether the embedding table serves as the output head."""
    sliding: Sliding | None = None
    mtp_layers: int = 0
    """Layers for multi-token prediction, kept out of every total here but `parameters_mtp`."""
    weights: Precisions = ALL_BF16
    kv_bits: float = 16
    """Bits of one number in the KV cache."""
    source: str = ""

    def __post_init__(self) -> None:
        check_sizes(self, may_be_zero=("dense_layers", "dense_ff", "mtp_layers"))
        Precision(self.kv_bits)
        if self.dense_layers > self.layers:
            raise UsageError(f"impossible geometry: {self.dense_layers} dense of {self.layers} layers")
        if self.dense_layers < self.layers and self.experts is None:
            raise UsageError(f"impossible geometry: {self.expert_layers} layers with experts, and no experts")
        if self.dense_layers and not self.dense_ff:
            raise UsageError("impossible geometry: dense layers of width 0")
        if self.sliding and self.sliding.layers > self.layers:
            raise UsageError(f"impossible geometry: {self.sliding.layers} sliding of {self.layers} layers")
        if self.parameters_total() > _MOST_PARAMETERS:
            raise UsageError("impossible geometry: over 10¹⁵ parameters")

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return self.layers - self.dense_layers

    def parameters_by_part(self) -> dict[str, int]:
        """Parameters of each of PARTS.

        attention   layers × its projections
        dense       dense layers × 3 · hidden · dense_ff
        routed      expert layers × count × 3 · hidden · ff
        shared      expert layers × shared × 3 · hidden · shared_ff
        embedding   vocab · hidden
        output      vocab · hidden, or 0 where it is the embedding table
        other       norms of width hidden, two per layer and a last one; routers, count · hidden each
        """
        return dict(self._parameters)

    @cached_property
    def _parameters(self) -> Mapping[str, int]:
        table = self.vocab * self.hidden
        norms = (_NORMS_PER_LAYER * self.layers + 1) * self.hidden
        sizes = {
            "attention": self.layers * sum(self.attention.modules(self.hidden).values()),
            "dense": self.dense_layers * _MATRICES * self.hidden * self.dense_ff,
            "routed": 0,
            "shared": 0,
            "embedding": table,
            "output": 0 if self.tied else table,
            "other": norms,
        }
        for name, n in self._expert_block().items():
            sizes[name] += self.expert_layers * n
        return sizes

    def _expert_block(self) -> dict[str, int]:
        """Parameters of the experts and router of one layer; nothing where there are no experts."""
        if self.experts is None:
            return {}
        return {
            "routed": self.experts.count * _MATRICES * self.hidden * self.experts.ff,
            "shared": self.experts.shared * _MATRICES * self.hidden * self.experts.shared_ff,
            "other": self.experts.count * self.hidden,
        }

    def parameters_total(self) -> int:
        """Parameters of the whole model without its MTP layers."""
        return sum(self._parameters.values())

    def parameters_active(self) -> int:
        """Parameters that one token uses: all but routed experts, and top_k of count of these.

        The embedding table counts in full, as it does in most published figures.
        """
        sizes = self.parameters_by_part()
        if self.experts is not None:
            sizes["routed"] = sizes["routed"] // self.experts.count * self.experts.top_k
        return sum(sizes.values())

    def parameters_mtp(self) -> int:
        """Parameters of the MTP layers: each one more (expert) layer and a projection 2 · hidden → hidden.

        Their embedding and head are the model's own (DeepSeek-V3, arXiv 2412.19437, section 2.2).
        """
        feed_forward = sum(self._expert_block().values()) or _MATRICES * self.hidden * self.dense_ff
        norms = (_NORMS_PER_LAYER + 3) * self.hidden
        one = sum(self.attention.modules(self.hidden).values()) + feed_forward + norms + 2 * self.hidden**2
        return self.mtp_layers * one

    def weight_bytes(self) -> int:
        """Bytes of all weights, scales included, MTP layers not."""
        return round(sum(self._bytes.values()))

    def bytes_by_part(self) -> dict[str, int]:
        """Bytes of each of PARTS, scales included."""
        return {part: round(n) for part, n in self._bytes.items()}

    @cached_property
    def _bytes(self) -> Mapping[str, float]:
        return {part: self._parameters[part] * self.weights.of(part).bits_per_weight / 8 for part in PARTS}

    def bytes_read_per_step(self, distinct_experts: float | None = None) -> float:
        """Bytes of weights that one decode step streams from memory, all devices together.

        Every part once, whatever the batch, but: routed experts × distinct_experts / count, where
        `distinct_experts` is the mean per layer of those that any token of the step uses (None: top_k, as for
        one token); and of the embedding table only the rows looked up, which count as nothing, unless the
        table is the output head. Raises UsageError for more distinct experts than there are, or under none.
        """
        routed = self._bytes["routed"] * self._expert_share(distinct_experts)
        return self._flat_bytes + routed

    @cached_property
    def _flat_bytes(self) -> float:
        """Of weights that every step streams, whatever its tokens are."""
        elsewhere = {"routed"} if self.tied else {"routed", "embedding"}
        return sum(n for part, n in self._bytes.items() if part not in elsewhere)

    def _expert_share(self, distinct: float | None) -> float:
        if self.experts is None:
            return 0.0
        used = self.experts.top_k if distinct is None else distinct
        if not 0 <= used <= self.experts.count:
            raise UsageError(
                f"{used} distinct experts of {self.experts.count}: give 0 to {self.experts.count}"
            )
        return used / self.experts.count

    def kv_bytes_per_token(self) -> float:
        """Bytes that one more token adds to the cache while it is within every window.

        layers × cached numbers per token and layer × kv_bits / 8.
        """
        return self.layers * self._kv_bytes_per_layer()

    def kv_bytes(self, context: float) -> float:
        """Bytes of the cache that a step reads for one sequence with `context` tokens, all devices together.

        Full layers hold `context` tokens, sliding ones at most their window.
        """
        return self._cached_tokens(context) * self._kv_bytes_per_layer()

    def _kv_bytes_per_layer(self) -> float:
        return self.attention.kv_values() * self.kv_bits / 8

    def _cached_tokens(self, context: float) -> float:
        """Over all layers."""
        if self.sliding is None:
            return self.layers * context
        full = self.layers - self.sliding.layers
        return full * context + self.sliding.layers * min(context, self.sliding.window)

    def flops_per_token(self, context: float = 0) -> float:
        """Floating-point operations of one token of a decode step after `context` cached ones.

        2 per active parameter, but for the embedding look-up, which computes nothing unless the table is the
        output head too; and attention over the cache.
        """
        attended = self._cached_tokens(context) * self.attention.flops_per_cached_token()
        return 2 * self._computed + attended

    @cached_property
    def _computed(self) -> int:
        """Parameters that one token is multiplied by."""
        looked_up = 0 if self.tied else self._parameters["embedding"]
        return self.parameters_active() - looked_up

    def all_reduce_calls(self) -> int:
        """AllReduces of one step under tensor parallelism: 2 · layers, as one follows attention and one the
        feed-forward block (Megatron-LM, arXiv 1909.08053, section 3)."""
        return 2 * self.layers

    def all_reduce_bytes(self, tokens: float = 1) -> float:
        """Message of one such call with `tokens` tokens in the step: tokens × hidden × 2 bytes."""
        return tokens * self.hidden * ACTIVATION_BYTES
