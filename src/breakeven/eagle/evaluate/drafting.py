"""The head's chains at every token of a reply, judged by the reply and by the target's own distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from breakeven.eagle.evaluate.drafted import Drafted, counted
from breakeven.eagle.evaluate.replies import Reply
from breakeven.eagle.head import Entries, Head
from breakeven.eagle.layers import AUX
from breakeven.eagle.sampling import Floats, given_token, overlap

CHAINS_AT_ONCE = 256
"""Logits of so many are held at one time: 33 MB for each place with a draft vocabulary of 32,000."""
LEAST = 1e-30
"""In place of a probability that is 0 in float32: the target did choose the token."""

TargetHead = Callable[[Tensor], Tensor]
"""Last states before the target's final norm, (n, hidden), to logits in float32, (n, vocabulary)."""


class Expected(NamedTuple):
    """What the target expects before each token of a reply but its first."""

    likely: Tensor
    """Probability of each token of the draft vocabulary, (chains, draft vocabulary)."""
    of_token: Tensor
    """Of the token that came, (chains,)."""
    greedy: int
    """How many of the tokens that came are the most probable."""


class Drafting:
    """A head beside its target, with chains of k and a temperature above 0, at which both would sample."""

    def __init__(self, head: Head, target: TargetHead, k: int, temperature: float) -> None:
        self._head, self._target = head, target
        self._k, self._temperature = k, temperature
        self._own_ids = torch.full((head.shape.vocabulary,), -1, device=head.device)
        self._own_ids[head.draft_ids] = torch.arange(len(head.draft_ids), device=head.device)

    def __call__(self, reply: Reply, states: Tensor) -> Drafted:
        """`states`: of the reply's sample, the three that the head reads and the last, (tokens, 4, hidden).

        The chain before token x_t begins at entry t − 2, whose token is x_{t−1}; what the target expects
        there follows from the last state of x_{t−1}.
        """
        states = states[: len(reply.ids) - 1].to(self._head.device, torch.float32)
        ids = torch.from_numpy(reply.ids.astype(np.int64)).to(self._head.device)
        entries = self._head.entries(ids[1:-1], states[:-1, :AUX])
        begins = torch.arange(reply.start - 1, len(entries), device=self._head.device)
        coming = ids[reply.start + 1 :]
        expected = self._expected(states[reply.start :, AUX], coming)
        blocks = [
            self._block(entries, at, first * CHAINS_AT_ONCE, coming, expected)
            for first, at in enumerate(begins.split(CHAINS_AT_ONCE))
        ]
        agrees, overlaps, ratios = (np.concatenate(of_blocks) for of_blocks in zip(*blocks, strict=True))
        return counted(agrees, overlaps, ratios, expected.greedy)

    def _block(
        self, entries: Entries, at: Tensor, first: int, coming: Tensor, expected: Expected
    ) -> tuple[NDArray[np.bool_], Floats, Floats]:
        """What chains from the entries `at`, the first of them before coming[first], do: whether they agree,
        Σ min(p, q) and min(1, q(x) / p(x)), each of shape (chains, k)."""
        chains, k = len(at), self._k
        following = torch.nn.functional.pad(coming[first:], (0, k - 1)).unfold(0, k, 1)[:chains]
        agrees, overlaps, ratios = np.zeros((chains, k), np.bool_), *np.zeros((2, chains, k))
        for place, logits in enumerate(self._head.chains(entries, at, k, following[:, :-1])):
            agrees[:, place] = (self._head.drafted(logits) == following[:, place]).cpu().numpy()
            inside = max(
                0, min(chains, len(coming) - first - place)
            )  # chains with a token of the reply there
            found = self._judged(logits[:inside], first + place, expected, coming)
            overlaps[:inside, place], ratios[:inside, place] = found
        return agrees, overlaps, ratios

    def _expected(self, last: Tensor, coming: Tensor) -> Expected:
        likely, of_token, greedy = [], [], 0
        for states, tokens in zip(last.split(CHAINS_AT_ONCE), coming.split(CHAINS_AT_ONCE), strict=True):
            logits = self._target(states)
            greedy += int((logits.argmax(-1) == tokens).sum())
            probabilities = (logits / self._temperature).softmax(-1)
            likely.append(probabilities[:, self._head.draft_ids])
            of_token.append(probabilities.gather(1, tokens[:, None])[:, 0])
        return Expected(torch.cat(likely), torch.cat(of_token), greedy)

    def _judged(
        self, logits: Tensor, first: int, expected: Expected, coming: Tensor
    ) -> tuple[Floats, Floats]:
        """Σ min(p, q) and min(1, q(x) / p(x)) of drafts with these logits, for the tokens from `first` on."""
        those = slice(first, first + len(logits))
        drafts = (logits / self._temperature).softmax(-1)
        own = self._own_ids[coming[those]]
        of_token = drafts.gather(1, own.clamp(min=0)[:, None])[:, 0] * (own >= 0)
        likely, certain = expected.likely[those], expected.of_token[those].clamp(min=LEAST)
        return (
            overlap(likely.cpu().numpy(), drafts.cpu().numpy()),
            given_token(certain.cpu().numpy(), of_token.cpu().numpy()),
        )
