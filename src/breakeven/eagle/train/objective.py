"""What a document says of a head: its loss by the trainer library's forward, and what would be accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from speculators.losses import resolve_loss_config

from breakeven.eagle.train.documents import Document
from breakeven.eagle.train.records import Scores

LOSSES: Mapping[str, str] = {"ce": "ce", "kl": "kl_div"}
"""The library's names. `ce` is against the target's most probable token, `kl` against all probabilities."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Training-time test of `steps` steps. Step i (from 0) weighs decay ** i, as the library decays."""

    steps: int
    decay: float
    loss: Literal["ce", "kl"]

    def of(self, head: Any, document: Document) -> tuple[Any, Any]:
        """The loss summed over the tokens learned from (differentiable), and a tally of the document.

        The library's loss of a document is, summed over the steps, decay ** i times the mean over the tokens
        learned from that are left at that step; it is multiplied here by their number at the first.
        """
        on_gpu = document.hidden.is_cuda
        with torch.autocast(document.hidden.device.type, torch.bfloat16, enabled=on_gpu):
            drafted, loss, metrics = head(
                hidden_states=document.hidden,
                input_ids=document.input_ids,
                document_ids=document.document_ids,
                loss_mask=document.learned,
                verifier_last_hidden_states=document.last,
                ttt_steps=self.steps,
                ttt_step_loss_decay=self.decay,
                loss_config=resolve_loss_config(LOSSES[self.loss], "fused" if on_gpu else "eager"),
            )
        tokens = document.learned.sum()
        summed = loss * tokens
        by_step = [metrics[f"loss_{step}_sum"] / self.decay**step * tokens for step in range(self.steps)]
        begun, accepted = accepted_chains(head, drafted, document)
        tally = (tokens, summed.detach(), *by_step, *begun, *accepted)
        return summed, torch.stack([one.double() for one in tally])

    def no_tally(self, device: Any) -> Any:
        """That of no document: float64 [2 + 3 · steps], which adds up over documents and processes."""
        return torch.zeros(2 + 3 * self.steps, dtype=torch.float64, device=device)

    def scores(self, tally: Any) -> Scores:
        """Of all documents in a tally."""
        tokens, loss, *rest = tally.tolist()
        by_step, begun, accepted = (rest[i * self.steps : (i + 1) * self.steps] for i in range(3))
        return Scores(
            loss / max(tokens, 1),
            tuple(one / max(tokens, 1) for one in by_step),
            tuple(right / of if of else None for right, of in zip(accepted, begun, strict=True)),
            int(tokens),
        )


def accepted_chains(head: Any, drafted: Sequence[Any], document: Document) -> tuple[list[Any], list[Any]]:
    """For each step: chains whose draft tokens so far were all accepted, before it and after it.

    A chain begins at each position that is asked for, and ends where the reply does. `drafted` is what the
    head drafts at each step, draft ids [1, T]; a chain that began at t drafts at step i for position t + i.
    """
    begun, accepted = [], []
    alive = document.asked[0]
    for step, ids in enumerate(drafted):
        left = len(alive) - min(step, 1)
        alive = alive[:left] & document.asked[0, step:]
        begun.append(alive.sum())
        alive = alive & (_of_target(head, ids[0, :left]) == document.target[0, step:])
        accepted.append(alive.sum())
    return begun, accepted


def _of_target(head: Any, ids: Any) -> Any:
    """Draft ids in the target's vocabulary."""
    return ids if head.d2t is None else ids + head.d2t[ids]
