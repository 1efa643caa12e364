"""How well a head does, and the lines of progress.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scores:
    """Of a batch, or of the validation prompts.

    A chain begins at each token of a reply, and is fed the tokens that really came (teacher-forced). A draft
    token of it counts as accepted if it, and all before it, are what the target finds most probable there.
    One that the draft vocabulary lacks is never accepted.
    """

    loss: float
    """Σ decay ** i · loss_by_step[i], per token that is learned from."""
    loss_by_step: tuple[float, ...]
    acceptance: tuple[float | None, ...]
    """Of draft token 1, 2, …, given that those before it were accepted; None where no chain got so far."""
    tokens: int
    """That are learned from."""

    def length(self, k: int) -> float:
        """Mean acceptance length with `k` draft tokens: 1 + a₁ + a₁a₂ + …, the target's own token with it."""
        return acceptance_length(self.acceptance[:k])


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer step; `step` counts from 1, `epoch` from 0."""

    step: int
    epoch: int
    loss: float
    """This and the next three as Scores has them, of the batch."""
    loss_by_step: tuple[float, ...]
    acceptance: tuple[float | None, ...]
    tokens: int
    learning_rate: float
    gradient_norm: float
    """Before it was clipped."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Validation:
    """The head after `step` optimizer steps, on prompts that it does not learn from."""

    step: int
    scores: Scores
    acceptance_length: float

    def beats(self, other: Validation | None) -> bool:
        """Whether more is accepted; of equals, the lower loss."""
        return other is None or self._rank() > other._rank()

    def _rank(self) -> tuple[float, float]:
        return self.acceptance_length, -self.scores.loss


def validation_from(said: Mapping[str, Any]) -> Validation:
    """From JSON. Raises KeyError or TypeError."""
    scores = said["scores"]
    return Validation(
        said["step"],
        Scores(scores["loss"], tuple(scores["loss_by_step"]), tuple(scores["acceptance"]), scores["tokens"]),
        said["acceptance_length"],
    )


def acceptance_length(conditional: Sequence[float | None]) -> float:
    """1 + a₁ + a₁a₂ + …, of the acceptances given that those before were accepted."""
    length = reached = 1.0
    for acceptance in conditional:
        reached *= acceptance or 0.0
        length += reached
    return length
