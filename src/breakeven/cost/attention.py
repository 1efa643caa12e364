"""The two kinds of attention: what their weights and their cache hold, and what they compute."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.cost.checks import check_sizes
from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class GroupedQuery:
    """Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245); multi-head where kv_heads = heads.

    Raises UsageError where the heads cannot be shared out among the KV heads.
    """

    heads: int
    kv_heads: int
    head_dim: int

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.heads % self.kv_heads:
            raise UsageError(f"impossible geometry: {self.heads} heads cannot share {self.kv_heads} KV heads")

    def modules(self, hidden: int) -> dict[str, int]:
        """Weights of one layer by the name of their projection."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q_proj": hidden * queries,
            "k_proj": hidden * keys,
            "v_proj": hidden * keys,
            "o_proj": queries * hidden,
        }

    def kv_values(self) -> int:
        """Numbers cached per token and layer: a key and a value for each KV head."""
        return 2 * self.kv_heads * self.head_dim

    def flops_per_cached_token(self) -> int:
        """Operations per new token, cached token and layer: q·k and the weighted sum of v, 2 per product."""
        return 4 * self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention, which caches a compressed form (DeepSeek-V2, arXiv 2405.04434, 2.1)."""

    heads: int
    q_rank: int | None
    """Rank of the compressed query; None where queries are not compressed."""
    kv_rank: int
    nope_dim: int
    """Of a query or key head, the part without rotary position."""
    rope_dim: int
    v_dim: int

    def __post_init__(self) -> None:
        check_sizes(self)

    def modules(self, hidden: int) -> dict[str, int]:
        """Weights of one layer by the name of their projection; norms are counted with what they scale."""
        query = self.heads * (self.nope_dim + self.rope_dim)
        compressed = {
            "kv_a_proj_with_mqa": hidden * (self.kv_rank + self.rope_dim) + self.kv_rank,
            "kv_b_proj": self.kv_rank * self.heads * (self.nope_dim + self.v_dim),
            "o_proj": self.heads * self.v_dim * hidden,
        }
        if self.q_rank is None:
            return {"q_proj": hidden * query, **compressed}
        return {
            "q_a_proj": hidden * self.q_rank + self.q_rank,
            "q_b_proj": self.q_rank * query,
            **compressed,
        }

    def kv_values(self) -> int:
        """Numbers cached per token and layer: the latent and one rotary key for all heads."""
        return self.kv_rank + self.rope_dim

    def flops_per_cached_token(self) -> int:
        """Operations per new token, cached token and layer, in the absorbed form that decoding uses:
        q·(latent, rotary key) and the weighted sum of latents, 2 per product."""
        return 2 * self.heads * (2 * self.kv_rank + self.rope_dim)


Attention = GroupedQuery | Latent
