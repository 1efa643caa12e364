"""What one pass of the target over a sample leaves behind, and the tensors that it is kept as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from breakeven.eagle.states.target import TargetWeights
from breakeven.eagle.states.target_head import TargetHead

POSITIONS_AT_ONCE = 256
"""Whose logits are held at one time: 154 MB in float32 with a vocabulary of 150,000."""
STATES, TOP_IDS, TOP_LOGPROBS = "hidden_states", "top_ids", "top_logprobs"

Head = Callable[[torch.Tensor], torch.Tensor]
"""States before the final norm, [tokens, hidden], to logits in float32, [tokens, vocabulary]."""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Which states of which target."""

    target: TargetWeights
    head: TargetHead
    """The target's own."""
    layers: tuple[int, ...]
    """Whose inputs are read; the last state comes besides."""
    dtype: str
    """Of the passes and of the states."""
    top: int

    @property
    def torch_dtype(self) -> torch.dtype:
        found: torch.dtype = getattr(torch, self.dtype)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """Of one sample, on the CPU."""

    hidden_states: torch.Tensor
    """[tokens, 4, hidden]: inputs of the three layers in their order, then of the final norm."""
    top_ids: torch.Tensor
    """int32 [tokens, top]: the likeliest tokens after each, likeliest first, …"""
    top_logprobs: torch.Tensor
    """… and float32 [tokens, top]: the logarithms of their probabilities in the whole vocabulary."""

    def named(self, sample: str) -> dict[str, torch.Tensor]:
        """As a shard holds them."""
        return {
            f"{sample}.{STATES}": self.hidden_states,
            f"{sample}.{TOP_IDS}": self.top_ids,
            f"{sample}.{TOP_LOGPROBS}": self.top_logprobs,
        }


class Source(Protocol):
    """Whoever runs the target."""

    def check(self, sample: Sequence[int]) -> None:
        """Raises UsageError where the target's own logits do not follow from its last states."""

    def passes(self, batch: Sequence[Sequence[int]]) -> list[Passed]:
        """One for each sample's token ids. What else is in the batch changes only the rounding of sums."""


def passed(states: torch.Tensor, head: Head, top: int) -> Passed:
    """From states [tokens, 4, hidden]: with the likeliest tokens that the last of the four leads to."""
    chosen = [
        torch.log_softmax(head(some), dim=-1).topk(top, dim=-1)
        for some in states[:, -1].split(POSITIONS_AT_ONCE)
    ]
    ids = torch.cat([one.indices for one in chosen]).to("cpu", torch.int32)
    logprobs = torch.cat([one.values for one in chosen]).cpu()
    return Passed(states.contiguous(), ids, logprobs)
