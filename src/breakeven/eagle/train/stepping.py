"""One optimizer step over all processes, and a look at the validation documents.

The loss of a batch is Σ tokens_d · loss_d / Σ tokens_d over its documents, whoever they were dealt to: it is
what one process would find that had them all. Each process adds up the gradients of tokens_d · loss_d of its
own; they are summed over the processes, and divided by all tokens. (A wrapper that averages over processes
would weigh a document by how many tokens the others of its process have.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from breakeven.eagle.train.documents import Document
from breakeven.eagle.train.model import trained
from breakeven.eagle.train.objective import Objective
from breakeven.eagle.train.processes import Processes
from breakeven.eagle.train.records import Scores

BETAS, WEIGHT_DECAY, CLIP = (0.9, 0.95), 0.0, 0.5
"""Of AdamW, and the largest norm of a gradient: as EAGLE-3's own training sets them."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What an optimizer step found."""

    scores: Scores
    gradient_norm: float
    interrupted: bool
    """Some process was asked to end."""


class Stepper:
    """A head with its optimizer, on this process's device."""

    def __init__(self, head: Any, objective: Objective, processes: Processes) -> None:
        self.head = head.to(processes.device)
        self.objective, self._processes = objective, processes
        self.parameters = trained(self.head)
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), betas=BETAS, weight_decay=WEIGHT_DECAY, lr=0.0
        )

    def step(self, documents: Iterable[Document], learning_rate: float, interrupted: bool = False) -> Taken:
        """One optimizer step with those of the batch that fell to this process."""
        self.head.train()
        self.optimizer.zero_grad()
        tally = self._no_tally()
        for document in documents:
            loss, found = self.objective.of(self.head, document.to(self._processes.device))
            loss.backward()
            tally[:-1] += found
        tally[-1] = float(interrupted)
        total = self._processes.add_up(tally)
        scores = self.objective.scores(total[:-1])
        norm = self._share_gradients(max(scores.tokens, 1))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        return Taken(scores, norm, bool(total[-1] > 0))

    def scores(self, documents: Iterable[Document]) -> Scores:
        """Of documents that fell to this process and to the others, without learning from them."""
        self.head.eval()
        tally = self.objective.no_tally(self._processes.device)
        with torch.no_grad():
            for document in documents:
                tally += self.objective.of(self.head, document.to(self._processes.device))[1]
        return self.objective.scores(self._processes.add_up(tally))

    def _no_tally(self) -> Any:
        """With a place for whether to end."""
        nothing = self.objective.no_tally(self._processes.device)
        return torch.cat([nothing, nothing.new_zeros(1)])

    def _share_gradients(self, tokens: int) -> float:
        """The batch's gradient, in every process alike, clipped; its norm before."""
        for parameter in self.parameters.values():
            if parameter.grad is None:  # no document fell to this process
                parameter.grad = torch.zeros_like(parameter)
            self._processes.add_up(parameter.grad).div_(tokens)
        return float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), CLIP))
