"""Speculative sampling: why drafts change no distribution, and how many of them pass.

The target has distribution p over the next token, the drafter q. A draft x, drawn from q, is accepted with
probability min(1, p(x) / q(x)); after a rejection the token is drawn from the residual, max(p − q, 0) made to
sum to 1; after a chain that was accepted whole, a bonus token is drawn from the target's next distribution.
What comes out has distribution p whatever q is (Leviathan, Kalman & Matias 2023, theorem 1; Chen et al. 2023,
theorem 1). At temperature 0 both put all mass on one token, and a draft passes where they are the same one.

A head drafts from a smaller vocabulary than the target's: q is then 0 outside of it, a q like others. Arrays
hold probabilities in their last dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a step that verified a chain emits: the accepted drafts, then one token of the target's own."""

    accepted: int
    token: int
    """Of the residual after a rejection, else the bonus."""


def softmax(logits: ArrayLike, temperature: float) -> Floats:
    """Probabilities, shape of `logits`. At temperature 0 all of it is on the first of the largest."""
    values = np.asarray(logits, np.float64)
    if temperature == 0:
        sure = np.zeros_like(values)
        np.put_along_axis(sure, values.argmax(-1, keepdims=True), 1.0, -1)
        return sure
    raised = np.exp((values - values.max(-1, keepdims=True)) / temperature)
    probabilities: Floats = raised / raised.sum(-1, keepdims=True)
    return probabilities


def widened(draft: ArrayLike, ids: ArrayLike, size: int) -> Floats:
    """A distribution over a draft vocabulary as one over the target's.

    draft: shape (…, draft vocabulary); ids: the target's id of each, shape (draft vocabulary,), no id twice.
    Shape (…, size).
    """
    narrow = np.asarray(draft, np.float64)
    wide = np.zeros((*narrow.shape[:-1], size))
    wide[..., np.asarray(ids)] = narrow
    return wide


def overlap(target: NDArray[np.floating], draft: NDArray[np.floating]) -> Floats:
    """Σ min(p, q): the share of drafts from q that the target accepts, 1 − their total variation distance.

    Over a draft vocabulary p at its ids is enough: elsewhere q is 0. Shape (…,) of (…, vocabulary).
    """
    shared: Floats = np.minimum(target, draft).sum(-1, dtype=np.float64)
    return shared


def residual(target: ArrayLike, draft: ArrayLike) -> Floats:
    """What replaces a rejected draft: max(p − q, 0) made to sum to 1; p itself where nothing is left."""
    p = np.asarray(target, np.float64)
    left = np.maximum(p - np.asarray(draft, np.float64), 0.0)
    mass = left.sum(-1, keepdims=True)
    normalised: Floats = np.where(mass > 0, left / np.where(mass > 0, mass, 1.0), p)
    return normalised


def given_token(target: ArrayLike, draft: ArrayLike) -> Floats:
    """The probability that a token which came out was an accepted draft: min(1, q(x) / p(x)).

    By Bayes: it came out with probability p(x), as an accepted draft with min(p(x), q(x)). So a reply that
    was sampled from the target tells what would have been accepted on it, without being sampled again.
    target, draft: p(x) > 0 and q(x) of the tokens that came out, of any one shape.
    """
    passed: Floats = np.minimum(1.0, np.asarray(draft, np.float64) / np.asarray(target, np.float64))
    return passed


def verify(target: ArrayLike, draft: ArrayLike, drafts: ArrayLike, rng: np.random.Generator) -> Verified:
    """One step of rejection sampling.

    target: p before each draft and after the last, shape (k + 1, vocabulary); draft: the q that each was
    drawn from, shape (k, vocabulary); drafts: shape (k,).
    """
    p, q = np.asarray(target, np.float64), np.asarray(draft, np.float64)
    tokens = np.asarray(drafts)
    for place, token in enumerate(tokens):
        if rng.random() * q[place, token] >= p[place, token]:
            return Verified(place, drawn(residual(p[place], q[place]), rng))
    return Verified(len(tokens), drawn(p[len(tokens)], rng))


def verify_greedy(best: ArrayLike, drafts: ArrayLike) -> Verified:
    """The same at temperature 0, where `best` is the target's choice at each place, shape (k + 1,)."""
    chosen = np.asarray(best)
    accepted = int(passing(np.asarray(drafts) == chosen[:-1]).sum())
    return Verified(accepted, int(chosen[accepted]))


def passing(agrees: ArrayLike) -> NDArray[np.bool_]:
    """Of a chain, the drafts before the first that fails; shape of `agrees`, (…, k)."""
    passed: NDArray[np.bool_] = np.logical_and.accumulate(np.asarray(agrees, np.bool_), axis=-1)
    return passed


def drawn(probabilities: Floats, rng: np.random.Generator) -> int:
    """A token of this distribution, shape (vocabulary,)."""
    return int(rng.choice(len(probabilities), p=probabilities / probabilities.sum()))


def expected_tokens(acceptance: ArrayLike) -> Floats:
    """Mean tokens of a step: 1 + a₁ + a₁a₂ + … + a₁⋯a_k, from the acceptance of each draft of a chain given
    that those before it were accepted; shape (…, k).

    With one α for all it is (1 − α^(k + 1)) / (1 − α) (Leviathan et al. 2023, equation 1).
    """
    tokens: Floats = 1 + np.cumprod(np.asarray(acceptance, np.float64), axis=-1).sum(-1)
    return tokens
