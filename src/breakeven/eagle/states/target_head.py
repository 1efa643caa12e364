"""The target's final norm and output matrix: from a last state to logits, without the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from breakeven.eagle.states.target import HEAD, NORM


@dataclass(frozen=True, slots=True, eq=False)
class TargetHead:
    """lm_head · RMSNorm(state). RMSNorm (Zhang and Sennrich 2019): x / √(mean(x²) + eps) · weight."""

    norm: torch.Tensor
    """[hidden]"""
    lm_head: torch.Tensor
    """[vocabulary, hidden]"""
    eps: float

    @classmethod
    def of(cls, weights: Mapping[str, torch.Tensor], eps: float) -> TargetHead:
        """From tensors as target.safetensors names them."""
        return cls(weights[NORM], weights[HEAD], eps)

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """[…, hidden] before the norm to logits in float32, […, vocabulary]."""
        wide = states.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        normed = self.norm * scaled.to(self.norm.dtype)
        return (normed.to(self.lm_head.dtype) @ self.lm_head.T).float()
